"""/proc as this host wrote it, and as hosts write it that know less."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.procfs import (
    HostTicks,
    Process,
    parse_host_ticks,
    parse_memory_bytes,
    parse_port_range,
    parse_run_queue_ns,
)

STAT = "cpu  782624 7557 121352 1659228 12355 0 7425 367 0 0\ncpu0 391000 3700 60000 830000 6000 0 3700 180 0 0\n"
STATUS = "Name:\tcat\nVmHWM:\t    2196 kB\nVmRSS:\t    2196 kB\nVmSwap:\t       8 kB\nThreads:\t1\n"


def test_host_ticks() -> None:
    """busy = 782624 + 7557 + 121352 + 0 + 7425 + 367 (steal); idle 1659228 and waiting for a disk 12355 are not."""
    assert parse_host_ticks(STAT) == HostTicks(busy=919_325, steal=367, total=2_590_908)


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"])
def test_host_ticks_that_are_not_told(text: str) -> None:
    assert parse_host_ticks(text) is None


def test_run_queue() -> None:
    assert parse_run_queue_ns("912345678 123456 42\n") == 123_456
    assert parse_run_queue_ns("") is None
    assert parse_run_queue_ns("1 x 2") is None


def test_memory() -> None:
    assert parse_memory_bytes(STATUS) == (2196 * 1024, 8192)
    assert parse_memory_bytes("Name:\tkthread\n") == (None, None)


def test_port_range() -> None:
    assert parse_port_range("32768\t60999\n") == 28_232
    assert parse_port_range("32768") is None


def test_a_system_without_proc_knows_nothing(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert (process.host_ticks(), process.run_queue_ns(), process.fds(), process.port_range()) == (None,) * 4
    assert process.memory_bytes() == (None, None)


def test_before_linux_6_2_descriptors_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "self/fd"
    folder.mkdir(parents=True)
    for number in range(7):
        (folder / str(number)).touch()

    class NoSize:
        st_size = 0

    monkeypatch.setattr(Path, "stat", lambda *_args, **_options: NoSize())
    assert Process(tmp_path).fds() == 7
