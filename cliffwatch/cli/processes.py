"""Child processes of one command: started in our own session, ended by pid, whatever happens to us."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import TracebackType
from urllib.error import URLError
from urllib.request import urlopen

from cliffwatch.errors import UnreachableError

_PR_SET_PDEATHSIG = 1
_GRACE_S = 5.0


class Children(AbstractContextManager["Children"]):
    """Starts `cliffwatch` commands in the background; leaving the context ends them, newest first.

    A child also ends when this process is killed outright (PR_SET_PDEATHSIG). Children stay in our session: an
    engine in a session of its own would starve the client on a small host.
    """

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start `cliffwatch ARGUMENTS`; its output goes to `<log_dir>/<name>.log`."""
        with self.log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "cliffwatch", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        self._running.append((name, process))
        return process

    def log(self, name: str) -> Path:
        return self._log_dir / f"{name}.log"

    def wait_until_up(self, name: str, url: str, *, timeout_s: float = 30.0) -> None:
        """Poll `url` until it answers 200. Raises UnreachableError when the child ends or time runs out."""
        process = next(process for known, process in self._running if known == name)
        wait_for(lambda: _answers(url) or process.poll() is not None, timeout_s=timeout_s)
        if process.poll() is not None or not _answers(url):
            tail = self.log(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            reason = tail[0] if tail else f"exit code {process.poll()}"
            raise UnreachableError(f"the {name} did not come up: {reason}", file=url)

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        for _, process in reversed(self._running):
            end(process)


def end(process: subprocess.Popen[bytes], grace_s: float = _GRACE_S) -> None:
    """SIGTERM, then SIGKILL after `grace_s`; returns once the process is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def die_with_parent() -> None:
    """For `preexec_fn`: ask the kernel to send us SIGTERM when the parent dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_for(condition: Callable[[], bool], *, timeout_s: float, every_s: float = 0.05) -> bool:
    """Poll `condition` until it holds (True) or `timeout_s` has passed (False)."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(every_s)
    return True


def free_port(preferred: int, host: str = "127.0.0.1") -> int:
    """`preferred` if it can be bound, else a free port chosen by the kernel."""
    for port in (preferred, 0):
        with closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise UnreachableError("no free port", file=host)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as response:  # noqa: S310  our own loopback address
            return bool(response.status == 200)
    except (URLError, OSError):
        return False
