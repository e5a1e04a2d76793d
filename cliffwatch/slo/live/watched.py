"""An SLO file's objectives as they are watched: what each promises, its expressions, where its records stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.engines.catalog import Metric
from cliffwatch.errors import InputError
from cliffwatch.slo.burn import HOUR_S
from cliffwatch.slo.live.status import Terms
from cliffwatch.slo.prometheus.alerts import least_bad
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.rules import Source, burn_alerts, composites_of, sources_of, watch_of
from cliffwatch.slo.spec import Objective, SloFile, load_slo
from cliffwatch.slo.watch import Watch
from cliffwatch.stats.percentile import sample_needs
from cliffwatch.units import as_written

NEEDS_RULES = "no record of it is there, and without the compiled rules it cannot be told"


@dataclass(frozen=True, slots=True)
class Watched:
    """One objective, or one composite of some, of one file.

    Attributes:
        id: the label `objective` of its records.
        threshold_s: of a latency objective; `metric` is then the histogram that has it as an edge.
        raw: its events can be told from raw series as exactly as from records: no record comes before them, and
            nothing is left out of them by time.
    """

    slo: str
    id: str
    promise: Promise
    watch: Watch
    events: Events
    terms: Terms
    threshold_s: float | None = None
    metric: Metric | None = None
    raw: bool = False


def watched(slo: SloFile, *, source: str) -> tuple[Watched, ...]:
    """Every objective of a file, then its composites that promise something of their own.

    Raises InputError, as `compile_rules` does, for what cannot be watched.
    """
    watch = watch_of(slo, source=source)
    objectives = [_objective(slo.name, watch, *one) for one in sources_of(slo, source=source)]
    composites = [
        Watched(slo.name, one.name, promise, watch, Events("", "", "composite"), _terms(promise, watch))
        for one, promise in composites_of(slo, watch, source=source)
        if promise is not None
    ]
    return (*objectives, *composites)


def _objective(name: str, watch: Watch, objective: Objective, source: Source) -> Watched:
    events = source.events
    return Watched(
        slo=name,
        id=source.labels["objective"],
        promise=objective,
        watch=watch,
        events=events,
        terms=_terms(objective, watch),
        threshold_s=objective.threshold,
        metric=None if objective.threshold is None else watch.catalog.metric(events.metric),
        raw=not source.rules and events.raw_up_to_s >= HOUR_S,
    )


def _terms(promise: Promise, watch: Watch) -> Terms:
    return Terms(
        target=as_written(promise.target),
        period_s=round(watch.period),
        needed=sample_needs(promise.target).sure,
        min_bad_events=least_bad(promise, watch),
        alerts=tuple(burn_alerts(promise, watch)),
    )


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
