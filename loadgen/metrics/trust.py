"""Whether a run's figures may be trusted, by what is known while it goes on."""

from __future__ import annotations

from cliffwatch.errors import RunError
from cliffwatch.records.check import Facts
from cliffwatch.records.checks import CHECKS
from cliffwatch.records.manifest import CheckResult, VerdictState, WorkerInfo, read_manifest
from cliffwatch.records.schema import Outcome
from loadgen.accounting import Totals
from loadgen.coordinator import Coordinator


def findings(coordinator: Coordinator, totals: Totals) -> dict[str, VerdictState] | None:
    """What is not well, by check; of a closed run as its manifest has it. None while nothing is known.

    While a run goes on these are the checks of workers, of what was measured before the run, of the send lag (over all
    phases, within the sketch's bound) and of late and lost requests; those that need the rows come at the end.
    """
    if coordinator.manifest is not None:
        verdict = coordinator.manifest.verdict
        return None if verdict is None else {reason.check: reason.state for reason in verdict.reasons}
    if not coordinator.reports:
        return None
    results = [*_of_facts(coordinator), *_of_totals(totals)]
    return {one.check: one.state for one in results if one.state not in {None, VerdictState.VALID}}


def _of_facts(coordinator: Coordinator) -> list[CheckResult]:
    try:
        manifest = read_manifest(coordinator.run_dir)
    except RunError:
        return []
    workers = [
        WorkerInfo(shard=shard, host=report.host, state="running", rows=0, health=report.health)
        for shard, report in coordinator.reports.items()
    ]
    facts = Facts(manifest.model_copy(update={"workers": tuple(workers)}), sending=None)
    found = [(check, check.fact(facts)) for check in CHECKS if check.fact is not None]
    return [check.judge(one.value, one.n, where=one.where, unknown=one.unknown) for check, one in found]


def _of_totals(totals: Totals) -> list[CheckResult]:
    lag, ended = totals.sketches["lag"], totals.outcomes.total()
    unserved = totals.outcomes[Outcome.LATE] + totals.outcomes[Outcome.LOST]
    values = {
        "send lag": (lag.percentile(0.99).value, lag.n),
        "late and lost": (unserved / ended if ended else None, ended),
    }
    return [check.judge(*values[check.name]) for check in CHECKS if check.name in values]
