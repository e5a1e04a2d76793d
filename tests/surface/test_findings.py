"""What a person is told first about a grid: a known cliff by its place and size, or the steepest step."""

from __future__ import annotations

from cliffwatch.records.schema import RequestRow
from cliffwatch.surface.findings import CLIFF, STEEPEST, findings
from cliffwatch.surface.grid import Question
from tests.records.synthetic import make_row
from tests.surface.test_dimensions import over

LENGTHS = [256 * 2**k for k in range(8)]


def rows(cliff_from: int) -> list[RequestRow]:
    """Ten requests a length, 10 ms a power of two of lengths with 2 % scatter; tenfold from `cliff_from` on."""
    made = []
    for at, length in enumerate(LENGTHS):
        for number in range(10):
            sent = (at * 10 + number) * 1_000_000_000
            ttft_ms = 10 * (1 + at) * (10 if length >= cliff_from else 1) * (0.98 + 0.004 * number)
            changes = {"input_tokens": length, "batch": 4, "intended_ns": sent, "sent_ns": sent}
            made.append(make_row(at * 10 + number, first_token_ns=sent + int(ttft_ms * 1e6), **changes))
    return made


def test_a_cliff_is_told_with_its_place() -> None:
    told = findings(over(rows(4096)), Question("ttft_s", "p50"), "TTFT")
    assert [(one.kind, one.row, one.column) for one in told.found] == [(CLIFF, 4096, 4)]
    assert "P50 of TTFT jumps ×12.5 from 2k to 4k at batch 4" in told.says  # 500 ms over 40 ms
    assert "(n 10 and 10)" in told.says


def test_without_a_cliff_the_steepest_step_is_told() -> None:
    told = findings(over(rows(10**9)), Question("ttft_s", "p50"), "TTFT")
    assert [(one.kind, one.row) for one in told.found] == [(STEEPEST, 512)]
    assert told.says.startswith("No cliff found (1 of 1 columns have enough data to look); the steepest step")
