"""What a manifest tells of its workers' clocks."""

from __future__ import annotations

from loadgen import messages
from loadgen.accounting import Board, Tally
from loadgen.closing import _wall_clocks


class _Nothing:
    def issued(self, request_id: int, intended_ns: int) -> None:
        raise AssertionError

    def ended(self, row: object) -> None:
        raise AssertionError


def test_wall_clocks_of_another_time_are_told_once_a_process() -> None:
    board = Board("run")
    for shard, (pid, offset_s) in enumerate([(1, 0.99), (2, -3600.04), (2, -3600.04), (3, 2.5), (4, None)]):
        report = messages.plain(Tally("run", shard, _Nothing()).report()) | {"host": "h", "pid": pid}
        clock = None if offset_s is None else {"offset_s": offset_s, "bound_s": 0.001}
        board.take(report | {"clock": clock}, 1.0)
    assert _wall_clocks(board) == [
        "the wall clock of worker 2 on h is 3600.0 s behind the master's: its logs are, too; this run's times are not",
        "the wall clock of worker 3 on h is 2.5 s ahead of the master's: its logs are, too; this run's times are not",
    ]
