"""An SLO file's objectives as they are watched: what each promises, its expressions, where its records stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from cliffwatch.engines.catalog import Metric
from cliffwatch.errors import InputError
from cliffwatch.slo.burn import STANDARD_PAIRS, burn_alert
from cliffwatch.slo.live.status import Terms
from cliffwatch.slo.prometheus.events import Events, events_of, in_unit
from cliffwatch.slo.prometheus.rules import compile_rules, objective_id
from cliffwatch.slo.spec import Objective, SloFile, load_slo
from cliffwatch.slo.watch import Watch


@dataclass(frozen=True, slots=True)
class Watched:
    """One objective of one file; `id` is the label `objective` of its records, `metric` what it counts on."""

    slo: str
    id: str
    objective: Objective
    watch: Watch
    events: Events
    terms: Terms
    metric: Metric

    @property
    def threshold(self) -> float | None:
        """In the metric's own unit; None for an objective without one."""
        seconds = self.objective.threshold
        return None if seconds is None else in_unit(seconds, self.metric)


def watched(slo: SloFile, *, source: str) -> tuple[Watched, ...]:
    """Every objective of a file. Raises InputError, as `compile_rules` does, for what cannot be watched."""
    compile_rules(slo, source=source)
    watch = slo.watch
    assert watch is not None  # noqa: S101  refused above
    return tuple(_watched(slo.name, one, watch, number) for number, one in enumerate(slo.objectives))


def _watched(name: str, objective: Objective, watch: Watch, number: int) -> Watched:
    target, period_s = Decimal(repr(objective.target)), round(watch.period)
    events = events_of(objective, watch, field=f"objectives[{number}]")
    alerts = tuple(burn_alert(pair, target, period_s) for pair in STANDARD_PAIRS)
    terms = Terms(target, period_s, objective.needed, watch.min_bad_events, alerts)
    return Watched(name, objective_id(objective), objective, watch, events, terms, watch.catalog.metric(events.metric))


def load_watched(paths: Sequence[str | Path]) -> dict[str, tuple[Watched, ...]]:
    """The objectives of every file by the file's SLO name. Raises InputError for a bad file, or one name in two."""
    found: dict[str, tuple[Watched, ...]] = {}
    for path in paths:
        slo = load_slo(path)
        if slo.name in found:
            allowed = "a name of its own: it tells the records of two files apart"
            raise InputError("stands in another file too", file=path, field="name", value=slo.name, allowed=allowed)
        found[slo.name] = watched(slo, source=str(path))
    return found


def slo_files(places: Sequence[Path]) -> list[Path]:
    """These files, and every `*.yaml` and `*.yml` in folders among them. Raises InputError for an empty folder."""
    found: list[Path] = []
    for place in places:
        inside = sorted([*place.glob("*.yaml"), *place.glob("*.yml")]) if place.is_dir() else [place]
        if not inside:
            raise InputError("holds no SLO file", file=place, allowed="a folder with *.yaml or *.yml")
        found += inside
    return found
