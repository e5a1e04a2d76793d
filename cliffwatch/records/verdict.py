"""Whether the figures of a run may be trusted: every check of the table is made, and the worst finding decides."""

from __future__ import annotations

import duckdb

from cliffwatch.records.check import Check, Facts
from cliffwatch.records.checks import CHECKS
from cliffwatch.records.manifest import CheckResult, Manifest, Reason, RunState, Verdict, VerdictState
from cliffwatch.records.replicas import count_answers
from cliffwatch.records.sending import measure_sending


def judge_trust(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Verdict:
    """Check the view `requests` and what `manifest` knows of the workers; a partial run is DEGRADED at best."""
    results = [*_rows(connection), *_facts(connection, manifest)]
    reasons = [
        Reason(check=one.check, state=one.state, message=one.message, value=one.value, threshold=one.threshold)
        for one in results
        if one.state is not None and one.state is not VerdictState.VALID and one.message is not None
    ]
    if manifest.state is RunState.PARTIAL:
        message = f"the run is partial: {manifest.partial_reason or 'it was cut short'}"
        reasons.append(Reason(check="partial run", state=VerdictState.DEGRADED, message=message))
    worst = max((reason.state for reason in reasons), key=list(VerdictState).index, default=VerdictState.VALID)
    return Verdict(state=worst, reasons=tuple(reasons), checks=tuple(results))


def _rows(connection: duckdb.DuckDBPyConnection) -> list[CheckResult]:
    """The checks over rows, all in one reading of them."""
    checks = [check for check in CHECKS if check.sql is not None]
    selected = ", ".join(f"{check.sql}, {check.n_sql}" for check in checks)
    values = connection.execute(f"SELECT {selected} FROM requests").fetchone() or ()  # noqa: S608  from a table of ours
    return [check.judge(value, n) for check, value, n in zip(checks, values[::2], values[1::2], strict=True)]


def _facts(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> list[CheckResult]:
    sending = None
    if manifest.open_loop:
        kind = (manifest.workload.get("arrivals") or {}).get("kind")
        sending = measure_sending(connection, poisson=kind == "poisson")
    answers = None if manifest.replicas is None else count_answers(connection)
    facts = Facts(manifest, sending, answers)
    return [_look(check, facts) for check in CHECKS if check.fact is not None]


def _look(check: Check, facts: Facts) -> CheckResult:
    assert check.fact is not None  # noqa: S101
    found = check.fact(facts)
    return check.judge(found.value, found.n, where=found.where, unknown=found.unknown)
