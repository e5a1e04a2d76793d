"""The trust verdict: each check at, below and above its threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from cliffwatch.records.check import Check
from cliffwatch.records.checks import CHECKS
from cliffwatch.records.figures import view_columns
from cliffwatch.records.manifest import RunState, Verdict, VerdictState
from cliffwatch.records.parquet import table_of
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.records.verdict import judge_trust
from cliffwatch.report.words import checked
from tests.records.synthetic import make_manifest, make_row

MS = 1_000_000


def judge(
    rows: list[RequestRow], state: RunState = RunState.COMPLETE, reason: str | None = None, **facts: Any
) -> Verdict:
    with duckdb.connect() as connection:
        connection.register("stored", table_of(rows))
        connection.execute(f"CREATE VIEW requests AS SELECT {view_columns()} FROM stored")  # noqa: S608
        return judge_trust(connection, make_manifest(state=state, partial_reason=reason, **facts))


def rows(count: int = 1000, first: int = 0, **changes: Any) -> list[RequestRow]:
    return [make_row(i, **changes) for i in range(first, first + count)]


def sent_late(count: int, lag_ms: float, first: int) -> list[RequestRow]:
    return [make_row(i, sent_ns=i * MS + int(lag_ms * MS)) for i in range(first, first + count)]


def findings(verdict: Verdict) -> dict[str, VerdictState]:
    return {reason.check: reason.state for reason in verdict.reasons}


def test_a_good_run_is_valid() -> None:
    verdict = judge(rows())
    assert (verdict.state, verdict.reasons) == (VerdictState.VALID, ())
    assert [one.check for one in verdict.checks if one.state is VerdictState.VALID][:3] == [
        "nothing measured",
        "few samples",
        "late and lost",
    ]


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


@pytest.mark.parametrize(
    ("asked", "server", "expected"),
    [
        (8, 11, {}),  # 38 % more, and three tokens
        (8, 13, {}),  # 5 / 256 = 1.95 %
        (8, 14, {"prompt length": VerdictState.DEGRADED}),  # 6 / 256 = 2.3 %
        (8, 60, {"prompt length": VerdictState.INVALID}),  # 52 / 256 = 20.3 %
        (256, 262, {"prompt length": VerdictState.DEGRADED}),
    ],
)
def test_a_few_tokens_more_are_no_fault_of_a_tiny_prompt(asked: int, server: int, expected: Any) -> None:
    assert findings(judge(rows(input_tokens=asked, server_input_tokens=server))) == expected


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
        Check("x", "x", "", None, None, "", sql="1")


def _at(threshold: float) -> tuple[float, float]:
    """A value just under a threshold, and one on it."""
    return threshold * (1 - 1e-9), threshold


def health(**values: Any) -> dict[str, Any]:
    return {"workers": [{"shard": 0, "state": "finished", "rows": 1, "health": {"measured_s": 60.0, **values}}]}


OF_WORKERS = [
    ("loop lag", "loop_lag_p99_s", 0.05, 1.0),
    ("standstill", "loop_lag_max_s", 0.5, None),
    ("collector pause", "gc_max_s", 0.05, 1.0),
    ("worker CPU", "loop_cpu_share", 0.85, 0.97),
    ("run queue", "run_queue_share", 0.1, 0.4),
    ("CPU steal", "host_steal_share", 0.02, 0.2),
]


@pytest.mark.parametrize(("check", "field", "degraded", "invalid"), OF_WORKERS)
def test_how_workers_were(check: str, field: str, degraded: float, invalid: float | None) -> None:
    below, on = _at(degraded)
    assert findings(judge(rows(), **health(gc_pauses=1, **{field: below}))) == {}
    assert findings(judge(rows(), **health(gc_pauses=1, **{field: on}))) == {check: VerdictState.DEGRADED}
    if invalid is not None:
        below, on = _at(invalid)
        assert findings(judge(rows(), **health(gc_pauses=1, **{field: below}))) == {check: VerdictState.DEGRADED}
        assert findings(judge(rows(), **health(gc_pauses=1, **{field: on}))) == {check: VerdictState.INVALID}


@pytest.mark.parametrize(
    ("used", "expected"), [(799, {}), (800, VerdictState.DEGRADED), (979, VerdictState.DEGRADED), (980, "INVALID")]
)
def test_open_files_against_the_limit(used: int, expected: Any) -> None:
    found = findings(judge(rows(), **health(fds_used=used, fd_limit=1000)))
    assert found == ({"open files": expected} if expected else {})


def test_ports_are_shared_by_the_workers_of_a_host() -> None:
    def workers(*hosts: str) -> dict[str, Any]:
        values = {"measured_s": 1.0, "ports_used": 500, "port_range": 1000}
        return {
            "workers": [
                {"shard": shard, "host": host, "state": "finished", "rows": 1, "health": values}
                for shard, host in enumerate(hosts)
            ]
        }

    assert findings(judge(rows(), **workers("a", "b"))) == {}
    verdict = judge(rows(), **workers("a", "b", "b"))
    assert findings(verdict) == {"local ports": VerdictState.INVALID}
    assert "host b had 100% of its local ports" in verdict.reasons[0].message


def clocks(*values: tuple[float, float | None]) -> dict[str, Any]:
    """Workers by (bound, drift), a drift being known within 5 ms; without values one that was not compared."""
    known: list[dict[str, Any] | None] = [
        {"offset_s": -3600.0, "bound_s": bound, "drift_s": drift, "drift_bound_s": None if drift is None else 0.005}
        for bound, drift in values
    ]
    return {
        "workers": [
            {"shard": shard, "state": "finished", "rows": 1, "clock": clock}
            for shard, clock in enumerate(known or [None])
        ]
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], {}),
        ([(0.0199, None)], {}),  # an hour between wall clocks is of no account
        ([(0.001, None), (0.02, None)], {"clock bound": VerdictState.DEGRADED}),
        ([(0.001, 0.0249), (0.001, -0.0249)], {}),
        ([(0.001, 0.0251)], {"clock drift": VerdictState.DEGRADED}),
        ([(0.001, None), (0.001, -0.0251)], {"clock drift": VerdictState.DEGRADED}),
    ],
)
def test_clocks_that_are_not_known_well_or_drift(values: list[tuple[float, float | None]], expected: Any) -> None:
    verdict = judge(rows(), **clocks(*values))
    assert findings(verdict) == expected
    assert all(f"worker {len(values) - 1}" in reason.message for reason in verdict.reasons)


def test_the_worst_worker_is_named() -> None:
    workers = [
        {"shard": shard, "state": "finished", "rows": 1, "health": {"measured_s": 60.0, "loop_lag_p99_s": lag}}
        for shard, lag in enumerate((0.001, 0.2, None))
    ]
    verdict = judge(rows(), workers=workers)
    assert [reason.message for reason in verdict.reasons] == [
        "the event loop of worker 1 was late: P99 0.2 s (threshold 0.05 s)"
    ]


def test_what_nobody_measured_is_not_checked_and_says_so() -> None:
    checks = {one.check: one for one in judge(rows()).checks}
    unknown = checks["worker CPU"]
    assert (unknown.state, unknown.value, unknown.message) == (None, None, "no worker could tell")
    assert checks["TTFT bias"].message == "not measured: cliffwatch run --calibrate"
    assert checks["arrival rate"].message == "too few requests, or not this kind of arrivals"  # they took a second


def test_the_clients_own_error_is_a_share_of_the_tightest_objective() -> None:
    def run(p99_s: float, **tightest_s: float) -> dict[str, VerdictState]:
        error = {"n": 1000, "p50_s": 0.0001, "p99_s": p99_s, "max_s": 1.0}
        level = {
            "name": "load", "streams": 1, "asked_streams": 1, "gap_s": 0.02, "ttft": error, "itl": error,
            "core_s_per_chunk": 1e-5,
        }  # fmt: skip
        return findings(judge(rows(), calibration={"levels": [level], "took_s": 5.0}, tightest_s=tightest_s))

    assert run(0.0049, ttft=0.5, itl=0.05) == {}
    assert run(0.0051, ttft=0.5, itl=0.05) == {"ITL bias": VerdictState.DEGRADED}
    assert run(0.05, ttft=0.5) == {"TTFT bias": VerdictState.DEGRADED}
    assert run(0.05) == {}


def test_the_documented_table_is_the_table_of_checks() -> None:
    text = Path("docs/judgement.md").read_text(encoding="utf-8")
    for check in CHECKS:
        signs = [
            "–" if limit is None else f"{'<' if check.below else '≥'} {checked(limit, check.unit)}"
            for limit in (check.degraded, check.invalid)
        ]
        assert f"| {check.name} | {check.means} | {signs[0]} | {signs[1]} |" in text
