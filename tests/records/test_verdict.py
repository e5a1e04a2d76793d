"""The trust verdict: each check at, below and above its threshold."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from cliffwatch.records.figures import view_columns
from cliffwatch.records.manifest import RunState, Verdict, VerdictState
from cliffwatch.records.parquet import table_of
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.records.verdict import CHECKS, Check, judge_trust
from tests.records.synthetic import make_row

MS = 1_000_000


def judge(rows: list[RequestRow], state: RunState = RunState.COMPLETE, reason: str | None = None) -> Verdict:
    with duckdb.connect() as connection:
        connection.register("stored", table_of(rows))
        connection.execute(f"CREATE VIEW requests AS SELECT {view_columns()} FROM stored")  # noqa: S608
        return judge_trust(connection, state=state, partial_reason=reason)


def rows(count: int = 1000, first: int = 0, **changes: Any) -> list[RequestRow]:
    return [make_row(i, **changes) for i in range(first, first + count)]


def sent_late(count: int, lag_ms: float, first: int) -> list[RequestRow]:
    return [make_row(i, sent_ns=i * MS + int(lag_ms * MS)) for i in range(first, first + count)]


def findings(verdict: Verdict) -> dict[str, VerdictState]:
    return {reason.check: reason.state for reason in verdict.reasons}


def test_a_good_run_is_valid() -> None:
    assert judge(rows()) == Verdict(state=VerdictState.VALID, reasons=())


@pytest.mark.parametrize(
    ("late_share", "lag_ms", "expected"),
    [
        (0.005, 5000, {}),  # under 1 %: not in the P99
        (0.02, 40, {}),
        (0.02, 60, {"send lag": VerdictState.DEGRADED}),
        (0.02, 1100, {"send lag": VerdictState.INVALID}),
    ],
)
def test_send_lag(late_share: float, lag_ms: float, expected: dict[str, VerdictState]) -> None:
    late = int(1000 * late_share)
    assert findings(judge(rows(1000 - late) + sent_late(late, lag_ms, 1000))) == expected


def test_connecting_is_not_the_generators_lag() -> None:
    slow = [make_row(i, sent_ns=i * MS + 2000 * MS, connect_ns=1999 * MS) for i in range(1000, 1100)]
    assert findings(judge(rows(900) + slow)) == {}


def test_warm_up_lag_does_not_count() -> None:
    warm = [make_row(i, sent_ns=i * MS + 2000 * MS, phase=Phase.WARMUP) for i in range(1000, 1100)]
    assert findings(judge(rows(900) + warm)) == {}


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (0, {}),
        (1, {"late and lost": VerdictState.DEGRADED}),
        (49, {"late and lost": VerdictState.DEGRADED}),
        (50, {"late and lost": VerdictState.INVALID}),
    ],
)
def test_late_and_lost(bad: int, expected: dict[str, VerdictState]) -> None:
    lost = rows(bad, 1000, outcome=Outcome.LOST, sent_ns=None)
    assert findings(judge(rows(1000 - bad) + lost)) == expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (1034, {}),  # 0.98 %
        (1054, {"prompt length": VerdictState.DEGRADED}),  # 2.9 % more
        (994, {"prompt length": VerdictState.DEGRADED}),  # 2.9 % less
        (768, {"prompt length": VerdictState.INVALID}),  # a quarter less
        (None, {"prompt length unknown": VerdictState.DEGRADED}),
    ],
)
def test_prompt_length(server: int | None, expected: dict[str, VerdictState]) -> None:
    off = 100 if server is not None else 600  # a tenth of them is enough for the P95
    assert findings(judge(rows(1000 - off) + rows(off, 1000, server_input_tokens=server))) == expected


def test_a_batch_is_asked_for_the_sum_of_its_prompts() -> None:
    assert findings(judge(rows(batch=4, server_input_tokens=4096, output_tokens=32))) == {}


def test_few_samples() -> None:
    verdict = judge(rows(199))
    assert findings(verdict) == {"few samples": VerdictState.DEGRADED}
    assert verdict.reasons[0].message == "only 199 measured requests succeeded; a P95 needs 200"
    assert findings(judge(rows(200))) == {}


def test_nothing_measured() -> None:
    for sample in ([], rows(50, phase=Phase.WARMUP)):
        verdict = judge(sample)
        assert verdict.state is VerdictState.INVALID
        assert findings(verdict)["nothing measured"] is VerdictState.INVALID


def test_a_target_that_fails_every_request_is_a_true_measurement() -> None:
    failed = rows(300, outcome=Outcome.HTTP_5XX, server_input_tokens=None)
    assert findings(judge(failed)) == {"few samples": VerdictState.DEGRADED}


def test_a_partial_run_is_degraded_and_says_why() -> None:
    verdict = judge(rows(), RunState.PARTIAL, "interrupted by Ctrl-C")
    assert verdict.state is VerdictState.DEGRADED
    assert verdict.reasons[0].message == "the run is partial: interrupted by Ctrl-C"


def test_the_worst_finding_decides() -> None:
    lost = rows(100, 1000, outcome=Outcome.LOST, sent_ns=None)
    assert judge(rows(100) + lost, RunState.PARTIAL).state is VerdictState.INVALID


def test_checks_have_names_of_their_own_and_can_fail() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    with pytest.raises(ValueError, match="never fail"):
        Check("x", "1", None, None, "")
