from __future__ import annotations

from cliffwatch.records.schema import Outcome
from loadgen.accounting import Board, Tally, Totals
from loadgen.messages import plain
from loadgen.progress import view
from tests.loadgen.test_accounting import Nothing, row


def test_nothing_known_is_shown_as_unknown_not_as_zero():
    line = view(Totals(), -0.2, rate=4, duration_s=60, stopping=False).line
    assert "–/s of 4/s asked" in line and "60 s left" in line and "–/– (n 0)" in line


def test_failures_are_shown_by_class_with_the_first_message():
    tally, board = Tally("run", 0, Nothing()), Board("run")
    for number in range(40):
        tally.issued(number, 0)
        tally.ended(row(number, Outcome.HTTP_429 if number % 4 == 0 else Outcome.OK))
    board.take(plain(tally.report()), 10.0)
    line = view(board.totals(), 11.0, rate=None, duration_s=10, stopping=False).line
    for part in ("4.0/s", "ok 30", "http_429 10", "first error why", "last answers", "50 ms/50 ms (n 30)"):
        assert part in line, line
    assert "stopping" in view(board.totals(), 11.0, rate=None, duration_s=10, stopping=True).line
