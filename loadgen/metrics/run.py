"""The master's metrics: the run as a whole, and its requests over all workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cliffwatch.records.manifest import VerdictState
from loadgen.accounting import Totals
from loadgen.coordinator import Coordinator
from loadgen.members import Member
from loadgen.metrics import families
from loadgen.metrics.exposition import Labels, samples, summary
from loadgen.metrics.requests import build_info, of_flow, of_requests
from loadgen.metrics.trust import findings

_QUANTILES = (0.5, 0.9, 0.95, 0.99)
_ESTIMATED = {"ttft": "ttft", "itl": "itl", "e2e": "e2e", "lag": "send_lag"}
_RATE_WINDOW_S = 1.0


def master_text(coordinator: Coordinator | None) -> Iterator[str]:
    """Everything that a master exposes; without a run, only what it is itself."""
    yield from build_info()
    if coordinator is None:
        return
    own = {"run": coordinator.preparation.run_id}
    totals, counted = coordinator.totals(), coordinator.counts.counted()
    yield from _of_run(coordinator, totals, own)
    yield from _of_workers(coordinator, own)
    # a dead worker's recovered rows may be more than it had told of when it died
    issued = max(totals.issued, sum(one.requests for one in counted.sets))
    yield from of_flow(issued, totals.in_flight, own)
    yield from of_requests(counted, coordinator.counts.edges, own)


def _of_run(coordinator: Coordinator, totals: Totals, own: Labels) -> Iterator[str]:
    preparation = coordinator.preparation
    info = {"workload": preparation.workload.name, "model": preparation.target.model}
    yield from samples(families.RUN_INFO, [({**own, **info}, 1)])
    state = _state(coordinator)
    yield from samples(families.RUN_STATE, [({**own, "state": state}, 1)])
    if state == "running":
        yield from samples(families.ELAPSED, [(own, coordinator.elapsed_s)])
        asked = _asked_rate(coordinator)
        yield from samples(families.ASKED_RATE, [] if asked is None else [(own, asked)])
        yield from samples(families.ISSUED_RATE, [] if totals.rate is None else [(own, totals.rate)])
    workers = Counter(map(_worker_state, coordinator.members))
    yield from samples(families.WORKERS, (({**own, "state": state}, n) for state, n in workers.items()))
    yield from _of_trust(coordinator, totals, own)
    yield from summary(families.ESTIMATE, _estimates(totals, own))


def _of_trust(coordinator: Coordinator, totals: Totals, own: Labels) -> Iterator[str]:
    found = findings(coordinator, totals)
    if found is None:
        return
    verdict = max(found.values(), key=list(VerdictState).index, default=VerdictState.VALID)
    states = (({**own, "verdict": state.value}, int(state is verdict)) for state in VerdictState)
    yield from samples(families.VERDICT, states)
    reasons = (({**own, "check": check, "verdict": state.value}, 1) for check, state in found.items())
    yield from samples(families.FINDING, reasons)


def _state(coordinator: Coordinator) -> str:
    if coordinator.error is not None:
        return "failed"
    if coordinator.manifest is not None:
        return coordinator.manifest.state.value
    if coordinator.stop_reason is not None:
        return "stopping"
    return "running" if coordinator.elapsed_s > 0 else "preparing"


def _worker_state(member: Member) -> str:
    if member.dead:
        return "dead"
    return "finished" if member.parts and not member.busy else "alive"


def _asked_rate(coordinator: Coordinator) -> float | None:
    """Mean of the last second, so that a step is a step; None where server or trace decide."""
    now_s = coordinator.elapsed_s
    workload = coordinator.preparation.workload
    if workload.duration is not None and now_s > workload.duration:
        return 0.0
    then_s = max(0.0, now_s - _RATE_WINDOW_S)
    due, before = workload.expected_requests(now_s), workload.expected_requests(then_s)
    return None if due is None or before is None or now_s <= then_s else (due - before) / (now_s - then_s)


def _of_workers(coordinator: Coordinator, own: Labels) -> Iterator[str]:
    """How the workers are, and their clocks; what is not known has no sample."""
    reports = []
    for member in coordinator.members:
        held = [part.number for part in member.parts if not part.closed and not part.settled]
        if not member.dead and held and held[-1] in coordinator.reports:
            # by the number of its first part, as on the worker's own endpoint
            reports.append((member.parts[0].number, coordinator.reports[held[-1]]))
    for part, table in (("health", families.HEALTH), ("clock", families.CLOCK)):
        for field, family in table.items():
            values = [(number, getattr(getattr(report, part), field, None)) for number, report in reports]
            known = [({**own, "worker": str(number)}, value) for number, value in values if value is not None]
            yield from samples(family, known)


def _estimates(totals: Totals, own: Labels) -> Iterator[tuple[Labels, dict[float, float], int]]:
    for name, shown in _ESTIMATED.items():
        sketch = totals.sketches[name]
        values = {p: sketch.percentile(p).value for p in _QUANTILES}
        known = {p: value for p, value in values.items() if value is not None}
        if known:
            yield {**own, "metric": shown}, known, sketch.n
