"""What can be backtested: an SLO file's objectives as events and bad events in PromQL, or why not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cliffwatch.slo.backtest.composed import Composition
from cliffwatch.slo.prometheus.alerts import least_bad
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.prometheus.rules import Source, compile_rules, composites_of, source_of, sources_of, watch_of
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch


@dataclass(frozen=True, slots=True)
class Subject:
    """One objective of a file; `id` is the label `objective` of its records."""

    id: str
    objective: Objective
    watch: Watch
    events: Events

    @property
    def promise(self) -> Promise:
        return self.objective

    @property
    def notes(self) -> tuple[str, ...]:
        """What the figures leave out."""
        return self.events.notes

    @property
    def min_bad_events(self) -> int:
        """That an alert needs in its long window: of slices one is enough."""
        return least_bad(self.objective, self.watch)


def subjects(slo: SloFile, *, source: str) -> tuple[Subject, ...]:
    """Every objective of a file. Raises InputError where one cannot be compiled."""
    compile_rules(slo, source=source)  # a file with a wrong composite is refused as well
    watch = watch_of(slo, source=source)
    return tuple(
        Subject(found.labels["objective"], one, watch, _from_raw(found))
        for one, found in sources_of(slo, source=source)
    )


def compositions(slo: SloFile, *, source: str) -> tuple[Composition, ...]:
    """Composites that promise something of their own. Raises InputError."""
    watch = watch_of(slo, source=source)
    return tuple(
        Composition(one.name, promise, watch, one.of, one.shares)
        for one, promise in composites_of(slo, watch, source=source)
        if promise is not None
    )


def rates_of(objective: Objective, slo: SloFile, *, field: str) -> Events:
    """Events as the rules count them, without what is excluded; `field` is for refusals. Raises InputError."""
    return _from_raw(source_of(slo, objective, field=field))


def _from_raw(found: Source) -> Events:
    """The events with the expressions of the records that come before in place of these: the same values, whether the
    rules were loaded then or not."""
    events = found.events
    for rule in found.rules:
        name, expression = selector(rule["record"], found.labels), f"({rule['expr']})"
        events = replace(
            events,
            all_of_them=events.all_of_them.replace(name, expression),
            bad=events.bad.replace(name, expression),
        )
    return events
