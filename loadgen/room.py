"""Whether this host has room for the connections that a workload is planned to hold, found out before any load."""

from __future__ import annotations

import resource

from cliffwatch.errors import RunError
from cliffwatch.workload.spec import Workload
from loadgen.procfs import Process

SPARE_FILES = 64  # what a worker has open beside its connections
_TELLING_S = 60.0  # answers that take longer are not what a person plans for


def file_room(limit: int) -> int:
    """Connections that a limit of open files (RLIM_INFINITY for none) leaves to a worker."""
    return (1 << 31) if limit == resource.RLIM_INFINITY else max(0, limit - SPARE_FILES)


def check_room(users: int, *, files: int, ports: int | None) -> None:
    """Refuse a worker's part of a closed loop whose users cannot all be connected.

    `users` are the worker's own, `files` and `ports` the connections that each leaves it. Raises RunError.
    """
    for room, of, cure in (
        (files, "file descriptors", "a higher hard limit (ulimit -Hn), or more workers"),
        (ports, "local ports", "a wider net.ipv4.ip_local_port_range, or workers on more hosts"),
    ):
        if room is not None and users > room:
            raise RunError(
                f"has too few {of} for its part of the users", field="arrivals.users", value=users,
                allowed=f"up to {room} a worker here; {cure}",
            )  # fmt: skip


def open_loop_note(workload: Workload, workers: int) -> str | None:
    """From which answer time on an open loop runs out of connections, where that is near; None where it is not."""
    if workload.rate is None or not workload.open_loop:
        return None
    files = file_room(resource.getrlimit(resource.RLIMIT_NOFILE)[1]) * max(1, workers)
    room = min(files, Process().port_range() or files)
    lasts_s = room / workload.rate
    if lasts_s >= min(_TELLING_S, workload.timeouts.total):
        return None
    return (
        f"at {workload.rate:g} requests/s this host's {room:,} connections to one target are used up once answers take "
        f"longer than {lasts_s:.3g} s"
    )
