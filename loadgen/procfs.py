"""What Linux tells of a process and its host under /proc. Every reading is None where it is not told."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_FD_COUNT_EVERY = 10  # readings: before Linux 6.2 counting means to list them all


@dataclass(frozen=True, slots=True)
class HostTicks:
    """CPU time of all cores since boot, in clock ticks."""

    busy: int
    steal: int
    total: int


def parse_host_ticks(text: str) -> HostTicks | None:
    """/proc/stat's first line (proc(5)). Guest time is part of user time already; waiting for a disk is not busy."""
    fields = text.split("\n", 1)[0].split()
    if len(fields) < 9 or fields[0] != "cpu" or not all(field.isdigit() for field in fields[1:9]):
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[1:9])
    busy = user + nice + system + irq + softirq + steal
    return HostTicks(busy, steal, busy + idle + iowait)


def parse_run_queue_ns(text: str) -> int | None:
    """/proc/PID/schedstat: nanoseconds on a core, nanoseconds ready and waiting for one, time slices."""
    fields = text.split()
    return int(fields[1]) if len(fields) == 3 and fields[1].isdigit() else None


def parse_memory_bytes(text: str) -> tuple[int | None, int | None]:
    """VmRSS and VmSwap of /proc/PID/status."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in {"VmRSS", "VmSwap"} and value.endswith("kB") and value[:-2].strip().isdigit():
            found[name] = int(value[:-2]) * 1024
    return found.get("VmRSS"), found.get("VmSwap")


def parse_port_range(text: str) -> int | None:
    """How many local ports ip_local_port_range gives out, its ends included."""
    fields = text.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    return max(0, int(fields[1]) - int(fields[0]) + 1)


class Process:
    """Readings of this process and its host. A file that cannot be read gives None."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._fd_readings = 0
        self._fds: int | None = None

    def host_ticks(self) -> HostTicks | None:
        text = self._read("stat")
        return None if text is None else parse_host_ticks(text)

    def run_queue_ns(self) -> int | None:
        """Of the main thread, which is the event loop's."""
        text = self._read("self/schedstat")
        return None if text is None else parse_run_queue_ns(text)

    def memory_bytes(self) -> tuple[int | None, int | None]:
        text = self._read("self/status")
        return (None, None) if text is None else parse_memory_bytes(text)

    def port_range(self) -> int | None:
        text = self._read("sys/net/ipv4/ip_local_port_range")
        return None if text is None else parse_port_range(text)

    def fds(self) -> int | None:
        """Open file descriptors. The folder's size is their number since Linux 6.2; before, it is 0."""
        folder = self._proc / "self/fd"
        try:
            if size := folder.stat().st_size:
                return size
            if self._fd_readings % _FD_COUNT_EVERY == 0:
                self._fds = len(os.listdir(folder))  # noqa: PTH208  names are not wanted
        except OSError:
            return None
        self._fd_readings += 1
        return self._fds

    def _read(self, name: str) -> str | None:
        try:
            with open(self._proc / name, "rb") as file:  # noqa: PTH123  once a second, on the worker's loop
                return file.read(4096).decode("ascii", "replace")
        except OSError:
            return None


def raise_file_limit() -> tuple[int, int | None]:
    """Raise this process's limit of open files to what the system lets it; the limit, and what it was if it was less.

    A limit that cannot be raised stays as it is.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or (soft >= hard != resource.RLIM_INFINITY):
        return soft, None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft, None
    return hard, soft
