"""Composites proven: their parts fed alike and one by one, and what follows worked out from the composite's own
arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from cliffwatch.slo.burn import error_budget
from cliffwatch.slo.composite import Composite
from cliffwatch.slo.prometheus.alerts import least_bad
from cliffwatch.slo.prometheus.composite_feed import Together, parts_of, together
from cliffwatch.slo.prometheus.composite_scenarios import of_single_parts, of_the_least
from cliffwatch.slo.prometheus.feed import NotFed
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.proof import Cell, Promtool, Proof, cells, run
from cliffwatch.slo.prometheus.rules import burn_alerts, objective_id
from cliffwatch.slo.prometheus.scenarios import scenarios
from cliffwatch.slo.prometheus.suite import Subject
from cliffwatch.slo.prometheus.terms import Terms, enough_events
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written

_BAD = "of the events of every part is bad"


def prove_composite(
    slo: SloFile, watch: Watch, one: Composite, promise: Promise | None, promtool: Promtool, proofs: Sequence[Proof]
) -> Proof:
    """Run all scenarios of a composite that compiles; `proofs` are those of the file's objectives."""
    ids = {objective_id(objective): objective for objective in slo.objectives}
    objectives = [ids[name] for name in one.of]
    label = f"{one.kind.value} of {', '.join(one.of)}"
    feed = together(one, objectives, watch)
    if isinstance(feed, NotFed):
        alerts = () if promise is None else tuple(burn_alerts(promise, watch))
        return Proof(one.name, label, one.target, alerts, unproven=feed.why)
    subject = Subject(feed, slo.name, one.name, one.of)
    if promise is None:
        return _least(subject, watch, one, feed, objectives, promtool, label, proofs)
    terms = _terms(promise, watch, one, feed)
    tried = (*scenarios(terms), *of_single_parts(terms))
    misses = run(subject, tried, promtool)
    return Proof(one.name, label, one.target, terms.alerts, _BAD, tuple(cells(terms, misses)), tried, misses)


def _least(
    subject: Subject, watch: Watch, one: Composite, feed: Together, objectives: Sequence[Objective],
    promtool: Promtool, label: str, proofs: Sequence[Proof],
) -> Proof:  # fmt: skip
    """A composite without alerts of its own: the first alert of its parts, as these were proven."""
    slowest = min(objectives, key=lambda objective: error_budget(as_written(objective.target)))
    terms = _terms(slowest, watch, one, feed)
    tried = tuple(of_the_least(terms, [error_budget(as_written(objective.target)) for objective in objectives]))
    misses = run(subject, tried, promtool)
    parts = {proof.key: proof for proof in proofs}
    table = tuple(_first([parts[name].table for name in one.of]))
    return Proof(one.name, label, None, (), f"{_BAD}; the first alert of any", table, tried, misses)


def _first(tables: Sequence[Sequence[Cell]]) -> Iterator[Cell]:
    """For each share and alert the earliest of the parts; proven where all of them are."""
    by_cell: Mapping[tuple[Decimal, str], list[Cell]] = {(cell.bad, cell.alert): [] for cell in tables[0]}
    for cell in (cell for table in tables for cell in table):
        by_cell[cell.bad, cell.alert].append(cell)
    for (bad, alert), some in by_cell.items():
        times = [cell.fires_after_s for cell in some if cell.fires_after_s is not None]
        known = [cell.proven for cell in some]
        proven = False if False in known else None if None in known else True
        yield Cell(bad, alert, min(times, default=None), proven)


def _terms(promise: Promise, watch: Watch, one: Composite, feed: Together) -> Terms:
    alerts = tuple(burn_alerts(promise, watch))
    return Terms(
        alerts,
        error_budget(as_written(promise.target)),
        enough_events(alerts, watch.min_bad_events),
        failures_counted=any(fed.failures_counted for fed in feed.parts),
        absence_told="running" in watch.catalog.signals,
        instances=all(fed.instances for fed in feed.parts),
        from_records=watch.exclude.sleeping and promise.slices is None,
        min_bad_events=least_bad(promise, watch),
        parts=parts_of(one, feed),
    )
