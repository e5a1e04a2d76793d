"""Rows worked out by hand: an engine counts prompts, so does our side."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome
from cliffwatch.slo.beside.client import ClientSide, read_client
from tests.records.synthetic import make_row
from tests.slo.rows import run_of

MS = 1_000_000


@pytest.fixture
def rows(tmp_path: Path) -> RunReader:
    """TTFT, E2E in ms: 50, 120 (7 gaps of 10); a batch of two with 30 and 40, 100; one fails after 50."""
    batch = make_row(
        1, batch=2, sent_ns=200 * MS, first_token_ns=240 * MS, last_token_ns=300 * MS, ended_ns=301 * MS,
        prompt_ttfts_us=[30_000, 40_000], chunk_gaps_us=[20_000, 40_000], output_tokens=4, chunks=4,
    )  # fmt: skip
    failed = make_row(
        2, sent_ns=400 * MS, first_token_ns=450 * MS, last_token_ns=460 * MS, ended_ns=470 * MS,
        outcome=Outcome.TRUNCATED, chunk_gaps_us=[10_000],
    )  # fmt: skip
    never = make_row(
        3, sent_ns=None, first_token_ns=None, first_answer_ns=None, last_token_ns=None, ended_ns=500 * MS,
        outcome=Outcome.CONNECT, status=None, itl_s=None, chunks=0, chunk_gaps_us=None, output_tokens=None,
    )  # fmt: skip
    run_of(tmp_path / "run", [make_row(0), batch, failed, never])
    return RunReader(tmp_path / "run")


def side(rows: RunReader, from_ns: int | None = None, to_ns: int | None = None) -> ClientSide:
    with rows.session() as connection:
        return read_client(connection, from_ns, to_ns, [("ttft", 0.04), ("e2e", 0.1)])


def test_means_count_prompts_and_what_was_never_sent_is_in_none(rows: RunReader) -> None:
    found = side(rows)
    assert (found.sent, found.batches, found.across, found.unended) == (4, 1, 0, 0)
    assert found.figures["ttft"].n == 4  # a first token is one, however the request ended
    assert found.figures["ttft"].mean_s == pytest.approx((0.05 + 0.03 + 0.04 + 0.05) / 4)
    assert found.figures["e2e"].n == 3  # each prompt of the batch takes as long as the batch
    assert found.figures["e2e"].mean_s == pytest.approx((0.12 + 2 * 0.1) / 3)
    assert found.figures["decode"].mean_s == pytest.approx((0.07 + 2 * 0.06) / 3)
    assert (found.figures["itl"].n, found.figures["itl"].sum_s) == (10, pytest.approx(0.07 + 0.06 + 0.01))
    assert found.within == {("ttft", 0.04): 2, ("e2e", 0.1): 2}


def test_a_request_across_an_end_is_counted_and_in_no_figure(rows: RunReader) -> None:
    found = side(rows, 150 * MS, 455 * MS)
    assert (found.sent, found.across) == (2, 1)
    assert found.figures["ttft"].mean_s == pytest.approx(0.035)


def test_nothing_inside_is_unknown_not_zero(rows: RunReader) -> None:
    assert side(rows, 600 * MS, 700 * MS).figures["ttft"].mean_s is None
