"""Each figure worked out by hand from one request's instants, and null wherever it is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from cliffwatch.records.figures import FIGURES, view_columns
from cliffwatch.records.parquet import table_of
from cliffwatch.records.schema import Outcome
from tests.records.synthetic import make_row

MS = 1_000_000
# Intended at 1,000 ms, connected in 30 ms, sent at 1,040 ms, tokens from 1,290 ms to 2,290 ms; two prompts, 22 tokens.
REQUEST: dict[str, Any] = {
    "batch": 2,
    "input_tokens": 500,
    "server_input_tokens": 1010,
    "output_tokens": 22,
    "intended_ns": 1000 * MS,
    "connect_ns": 30 * MS,
    "sent_ns": 1040 * MS,
    "first_token_ns": 1290 * MS,
    "first_answer_ns": 1390 * MS,
    "last_token_ns": 2290 * MS,
    "ended_ns": 2300 * MS,
    "itl_s": 0.0987,
    "chunk_gaps_us": [50_000, 150_000, 90_000],
}
EXPECTED = {
    "ttft_s": 0.25,
    "ttft_user_s": 0.29,
    "ttfa_s": 0.35,
    "ttfa_user_s": 0.39,
    "e2e_s": 1.25,
    "e2e_user_s": 1.29,
    "total_s": 1.25,
    "itl_s": 0.0987,
    "tpot_s": 0.1,  # 1.0 s after the first token over 11 - 1 tokens of each prompt
    "ntpot_s": 1.25 / 11,
    "output_rate": 22 / 1.25,
    "max_gap_s": 0.15,
    "connect_s": 0.03,
    "send_lag_s": 0.04,
    "dispatch_lag_s": 0.01,
    "waited_s": 1.26,
    "waited_user_s": 1.3,
    "length_error": 0.01,
}


def figures_of(**changes: Any) -> dict[str, Any]:
    with duckdb.connect() as connection:
        connection.register("stored", table_of([make_row(**(REQUEST | changes))]))
        connection.execute(f"CREATE VIEW requests AS SELECT {view_columns()} FROM stored")  # noqa: S608
        cursor = connection.execute(f"SELECT {', '.join(FIGURES)} FROM requests")  # noqa: S608
        return dict(zip(FIGURES, cursor.fetchall()[0], strict=True))


def test_every_figure_by_hand() -> None:
    assert figures_of() == {name: pytest.approx(value) for name, value in EXPECTED.items()}
    assert EXPECTED.keys() == FIGURES.keys()


def nulls(**changes: Any) -> set[str]:
    return {name for name, value in figures_of(**changes).items() if value is None}


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"connect_ns": None}, {"connect_s"}),  # a kept connection: the lag figures stay known
        ({"output_tokens": 2, "itl_s": None}, {"itl_s", "tpot_s"}),
        ({"output_tokens": 3, "itl_s": None}, {"itl_s", "tpot_s"}),  # one prompt may have one token only
        ({"last_token_ns": 1290 * MS, "itl_s": None}, {"itl_s", "tpot_s"}),  # all in one chunk: no interval was seen
        ({"output_tokens": 0, "itl_s": None}, {"itl_s", "tpot_s", "ntpot_s"}),
        ({"output_tokens": None, "itl_s": None}, {"itl_s", "tpot_s", "ntpot_s", "output_rate"}),
        ({"first_answer_ns": None}, {"ttfa_s", "ttfa_user_s"}),
        ({"server_input_tokens": None}, {"length_error"}),
        ({"chunk_gaps_us": None}, {"max_gap_s"}),
        ({"chunk_gaps_us": []}, {"max_gap_s"}),
        (
            {"outcome": Outcome.STALLED},  # its first token counts, its last is not its end
            {"e2e_s", "e2e_user_s", "total_s", "tpot_s", "ntpot_s", "output_rate"},
        ),
        (
            {"outcome": Outcome.LATE} | dict.fromkeys(("sent_ns", "connect_ns", "first_token_ns", "first_answer_ns")),
            set(EXPECTED) - {"itl_s", "max_gap_s", "waited_s", "waited_user_s", "length_error"},
        ),
    ],
)
def test_unknown_is_null_and_never_zero(changes: dict[str, Any], unknown: set[str]) -> None:
    assert nulls(**changes) == unknown


# The same, as the third attempt of a request that was due at 0 and first sent at 40 ms.
RETRIED: dict[str, Any] = {
    "intended_ns": 0,
    "connect_ns": 30 * MS,
    "attempts": 3,
    "attempt_sent_ns": [40 * MS, None, 1040 * MS],
    "attempt_ended_ns": [45 * MS, 500 * MS, 2300 * MS],
    "attempt_outcomes": [Outcome.HTTP_429, Outcome.CONNECT, Outcome.OK],
    "attempt_statuses": [429, None, 200],
}


def test_service_time_is_the_last_attempts_total_and_user_time_have_them_all() -> None:
    changed = {"ttft_user_s": 1.29, "ttfa_user_s": 1.39, "e2e_user_s": 2.29, "total_s": 2.25, "waited_user_s": 2.3}
    assert figures_of(**RETRIED) == {name: pytest.approx(value) for name, value in (EXPECTED | changed).items()}


def test_a_first_attempt_that_was_never_sent_has_no_lag_and_no_total() -> None:
    unsent = {"attempt_sent_ns": [None, 500 * MS, 1040 * MS], "connect_ns": None}
    assert nulls(**(RETRIED | unsent)) == {"total_s", "send_lag_s", "dispatch_lag_s", "connect_s"}


def test_the_largest_lengths_do_not_overflow() -> None:
    assert figures_of(input_tokens=2**31 - 1, batch=16, server_input_tokens=16 * (2**31 - 1))["length_error"] == 0


def test_documented(shared_dir: Path) -> None:
    """Every figure of the timing reference that comes from the client has a column here."""
    text = (shared_dir / "reference" / "timing.md").read_text(encoding="utf-8")
    for word, figure in {"TTFT": "ttft_s", "TTFA": "ttfa_s", "E2E": "e2e_s", "NTPOT": "ntpot_s"}.items():
        assert f"| {word} |" in text
        assert figure in FIGURES
