"""Room for connections: both sides of every limit."""

from __future__ import annotations

import resource

import pytest

from cliffwatch.errors import RunError
from cliffwatch.workload.spec import Workload
from loadgen.procfs import Process
from loadgen.room import check_room, file_room, open_loop_note


def workload(**arrivals: object) -> Workload:
    return Workload.model_validate({"arrivals": arrivals, "duration": 60})


def test_users_that_fit_and_one_more() -> None:
    check_room(50, files=50, ports=50)
    with pytest.raises(RunError, match=r"file descriptors.*51.*up to 50 a worker"):
        check_room(51, files=50, ports=60)
    with pytest.raises(RunError, match="local ports"):
        check_room(51, files=60, ports=50)
    check_room(50, files=50, ports=None)


def test_an_open_loop_is_never_refused() -> None:
    check_room(0, files=1, ports=1)


def test_files_beside_connections() -> None:
    assert file_room(1024) == 960
    assert file_room(10) == 0
    assert file_room(resource.RLIM_INFINITY) > 1 << 30


def test_when_connections_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """28,232 ports at 1,000/s last 28.2 s, at 470/s 60.07 s."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    monkeypatch.setattr(Process, "port_range", lambda _: 28_232)
    note = open_loop_note(workload(kind="poisson", rate=1000), 1)
    assert note is not None
    assert "28,232 connections" in note
    assert "28.2 s" in note
    assert open_loop_note(workload(kind="poisson", rate=470), 1) is None
    assert open_loop_note(workload(kind="concurrency", users=5), 1) is None
