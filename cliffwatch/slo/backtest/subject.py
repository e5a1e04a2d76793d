"""What can be backtested: an SLO file's objectives as events and bad events in PromQL, or why not."""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.events import Events, events_of
from cliffwatch.slo.prometheus.exclusions import excluded
from cliffwatch.slo.prometheus.rules import compile_rules, sources_of, watch_of
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch


@dataclass(frozen=True, slots=True)
class Subject:
    """One objective of a file; `id` is the label `objective` of its records."""

    id: str
    objective: Objective
    watch: Watch
    events: Events


def subjects(slo: SloFile, *, source: str) -> tuple[Subject, ...]:
    """Every objective of a file.

    Raises:
        InputError: it cannot be compiled, or holds what is no plain ratio of events.
    """
    compile_rules(slo, source=source)  # composites are not replayed, but a file with a wrong one is refused as well
    watch = watch_of(slo, source=source)
    for number, one in enumerate(slo.objectives):
        if one.slices is not None:
            field, allowed = f"objectives[{number}].slices", "a copy of the file without objectives in slices"
            raise InputError("cannot be backtested yet", file=source, field=field, allowed=allowed)
    return tuple(
        Subject(found.labels["objective"], one, watch, found.events) for one, found in sources_of(slo, source=source)
    )


def rates_of(objective: Objective, watch: Watch, *, field: str) -> Events:
    """Events as the rules count them, without what is excluded; `field` is for refusals. Raises InputError."""
    return excluded(events_of(objective, watch, field=field), watch)
