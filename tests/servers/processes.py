"""Starting a server as a child of the test, waiting until it answers, and ending it with all its children.

Children stay in the session of the test: in a session of its own a busy server can starve the client on a small machine
(the kernel's scheduler shares time between sessions first), and every latency would be the scheduler's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.cli import processes


@dataclass(frozen=True)
class Server:
    """A running server: its base URL, its process and its log."""

    url: str
    pid: int
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])


def free_port() -> int:
    """A TCP port of the loopback interface that was free a moment ago."""
    return processes.free_port(0)


def get_text(url: str, timeout_s: float = 10.0) -> str:
    """The body of a GET, for health checks, metrics and queries."""
    with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310  http to the loopback only
        return str(answer.read().decode())


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    *,
    url: str,
    health: str,
    log: Path,
    ready_within_s: float,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Run `command` until the block ends; enter it once `GET url + health` answers 2xx.

    Raises:
        RuntimeError: it ended or stayed silent; the message has the end of its log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    try:
        healthy = processes.wait_for(
            lambda: process.poll() is not None or _answers(url + health), timeout_s=ready_within_s, every_s=0.1
        )
        if not healthy or process.poll() is not None:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
            raise RuntimeError(f"{command[0]} is not ready (exit code {process.poll()}), {log}:\n{tail}")
        yield Server(url, process.pid, log)
    finally:
        end(process)


def _answers(url: str) -> bool:
    try:
        get_text(url, timeout_s=2.0)
    except (urllib.error.URLError, OSError):
        return False
    return True


def end(process: subprocess.Popen[bytes]) -> None:
    """End it, then kill what it started and left behind."""
    children = descendants(process.pid)
    processes.end(process, grace_s=15.0)
    for child, started in children.items():
        if _start_time(child) == started:  # still the same process, not a later one with its number
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def descendants(pid: int) -> dict[int, str]:
    """Every process below `pid`, with its start time in clock ticks since boot."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = list(parents.get(pid, ()))
    while waiting:
        child = waiting.pop()
        if (started := _start_time(child)) is not None:
            found[child] = started
        waiting += parents.get(child, ())
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on (the name before it may hold spaces); none for a dead process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def _start_time(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[19] if fields else None
