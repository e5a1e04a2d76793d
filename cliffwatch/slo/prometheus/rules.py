"""Prometheus rules of an SLO file: events and bad events as records, their ratio by window, budget left, burn alerts.

Ratios over long windows are sums of bad events over sums of events, so that idle hours weigh nothing, and no record is
ever NaN: a window without events has no ratio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cliffwatch.errors import InputError
from cliffwatch.slo.burn import STANDARD_PAIRS, BurnAlert, burn_alert, windows_of
from cliffwatch.slo.composite import Composite
from cliffwatch.slo.prometheus.alerts import burn_rule
from cliffwatch.slo.prometheus.calendar import period_sums
from cliffwatch.slo.prometheus.composite import composite_rules
from cliffwatch.slo.prometheus.counts import count_rules
from cliffwatch.slo.prometheus.events import Events, events_of
from cliffwatch.slo.prometheus.exclusions import excluded
from cliffwatch.slo.prometheus.health import health_rules
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.record import BASE_S, Rule, against_target, base, once, record, recorded
from cliffwatch.slo.prometheus.slices import sliced, throughput
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.slices import Slices
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written, format_share

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Rules of one file, and what its reader should know."""

    groups: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    series: str


def compile_rules(slo: SloFile, *, source: str = "SLO file") -> Compiled:
    """Rule groups for Prometheus. Raises InputError where `watch` is missing or an objective cannot be watched."""
    watch = watch_of(slo, source=source)
    beyond = watch.catalog.beyond(watch.version) if watch.version else None
    notes = [f"{beyond}: compiled as its newest; see cliffwatch engines detect"] if beyond else []
    groups: list[dict[str, Any]] = []
    for objective, found in sources_of(slo, source=source):
        alerts = burn_alerts(objective, watch)
        notes += [f"{objective.label}: {note}" for note in (*found.events.notes, *_mended(alerts, objective))]
        groups.append(_group(slo, watch, objective, found, alerts))
    groups += _composites(slo, watch, source=source)
    if watch.group_by:
        groups = [{"name": group["name"], "limit": watch.max_groups, "rules": group["rules"]} for group in groups]
    groups.append({"name": f"{slo.name}-health", "rules": health_rules(slo.name, watch)})
    return Compiled(tuple(groups), tuple(dict.fromkeys(notes)), _series(groups, watch))


def _series(groups: list[dict[str, Any]], watch: Watch) -> str:
    records = sum("record" in rule for group in groups for rule in group["rules"])
    if not watch.group_by:
        return f"{records} series"
    values = f"each value of {', '.join(watch.group_by)}"
    return f"{records} series for {values}: at most {records * watch.max_groups:,} for {watch.max_groups}"


def _composites(slo: SloFile, watch: Watch, *, source: str) -> list[dict[str, Any]]:
    """A group for each composite."""
    groups: list[dict[str, Any]] = []
    for one, promise in composites_of(slo, watch, source=source):
        labels = {"slo": slo.name, "objective": one.name}
        parts = [{**labels, "objective": name} for name in one.of]
        alerts = [] if promise is None else burn_alerts(promise, watch)
        burns = [burn_rule(slo, watch, promise, labels, alert) for alert in alerts if promise is not None]
        rules = [*composite_rules(one, watch, labels, parts, alerts), *burns]
        groups.append({"name": f"{slo.name}-{one.name}", "rules": once(rules)})
    return groups


def composites_of(slo: SloFile, watch: Watch, *, source: str) -> Iterator[tuple[Composite, Promise | None]]:
    """Each composite with what it promises itself (None: its parts do).

    Raises InputError for one of what is not there, or does not go together.
    """
    ids = {objective_id(one): one for one in slo.objectives}
    for number, one in enumerate(watch.composites):
        place = {"file": source, "field": f"watch.composites[{number}]"}
        if one.name in ids or any(one.name == other.name for other in watch.composites[:number]):
            raise InputError("is a name that stands twice", **place, value=one.name, allowed="one of its own")
        if unknown := next((name for name in one.of if name not in ids), None):
            raise InputError("names no objective of the file", **place, value=unknown, allowed=", ".join(ids))
        slices = {ids[name].slices is None: ids[name].slices for name in one.of}
        if len(slices) > 1:
            raise InputError("mixes slices and events", **place, allowed="objectives of one kind")
        yield one, None if one.target is None else _Composed(one.name, one.target, next(iter(slices.values())))


@dataclass(frozen=True, slots=True)
class _Composed:
    """What a composite promises."""

    label: str
    target: float
    slices: Slices | None


@dataclass(frozen=True, slots=True)
class Source:
    """Where an objective's figures come from: records that come before, events in terms of them, its labels."""

    rules: list[Rule]
    events: Events
    labels: dict[str, str]


def watch_of(slo: SloFile, *, source: str) -> Watch:
    """How a file is watched. Raises InputError where it is not, or its name cannot be part of rules."""
    if not _NAME.fullmatch(slo.name):
        allowed = "letters, digits, dot, dash, underscore: it is a label's value and part of rule names"
        raise InputError("cannot name rules", file=source, field="name", value=slo.name, allowed=allowed)
    if slo.watch is None:
        raise InputError("is missing", file=source, field="watch", allowed="watch: {engine: vllm, match: {job: ...}}")
    return slo.watch


def sources_of(slo: SloFile, *, source: str) -> Iterator[tuple[Objective, Source]]:
    """Each objective with where its figures come from. Raises InputError for the first that cannot be watched."""
    watch_of(slo, source=source)
    seen: set[str] = set()
    for number, objective in enumerate(slo.objectives):
        try:
            found = source_of(slo, objective, field=f"objectives[{number}]")
            _refuse_twice(found, seen, field=f"objectives[{number}]")
            yield objective, found
        except InputError as error:
            error.file = source
            raise


def _refuse_twice(found: Source, taken: set[str], *, field: str) -> None:
    name = found.labels["objective"]
    if name in taken:
        message = "would share its label `objective` with another"
        raise InputError(message, field=field, value=name, allowed="a `name` of its own for one of them")
    taken.add(name)


def source_of(slo: SloFile, objective: Objective, *, field: str) -> Source:
    """Where an objective's figures come from; `field` names it in refusals. Raises InputError."""
    watch = watch_of(slo, source=slo.name)
    labels = {"slo": slo.name, "objective": objective_id(objective)}
    if objective.sli is Sli.THROUGHPUT and objective.slices is not None:
        rules, events = throughput(objective.slices, watch, labels, field=field)
    else:
        rules, events = [], events_of(objective, watch, field=field)
        if objective.slices is not None:
            rules, events = sliced(objective.slices, events, labels)
    reach_s = BASE_S if objective.slices is None else round(objective.slices.length)
    return Source(rules, excluded(events, watch, reach_s=reach_s), labels)


def burn_alerts(objective: Promise, watch: Watch) -> list[BurnAlert]:
    """The alerts of an objective, from the fastest burn to the slowest."""
    return [burn_alert(pair, as_written(objective.target), round(watch.period)) for pair in STANDARD_PAIRS]


def objective_id(objective: Objective) -> str:
    """A label value that tells an objective from the others of its file: its name, or such as `ttft-2.5s-95pct`."""
    if objective.name is not None:
        return objective.name
    threshold = "" if objective.threshold is None else f"-{objective.threshold:g}s"
    slices = ""
    if (one := objective.slices) is not None:
        what = f"{one.tokens_per_s:g}tps" if one.tokens_per_s is not None else _pct(one.share or 0.0)
        slices = f"-{what}-in-{window_text(round(one.length))}"
    return f"{objective.sli.value}{threshold}{slices}-{_pct(objective.target)}"


def _pct(share: float) -> str:
    return f"{format_share(share).removesuffix(' %')}pct"


def _mended(alerts: list[BurnAlert], objective: Objective) -> list[str]:
    return [
        f"a burn rate of {alert.mended_from.normalize():.4g} over {window_text(alert.pair.long_s)} is out of reach for "
        f"a target of {format_share(objective.target)}; it alerts from {alert.factor:.4g} on, half of the events bad"
        for alert in alerts
        if alert.mended_from is not None
    ]


def _group(slo: SloFile, watch: Watch, objective: Objective, source: Source, alerts: list[BurnAlert]) -> dict[str, Any]:
    """One group: Prometheus evaluates its rules in order, so that alerts and boards see the same moment."""
    labels = source.labels
    windows = sorted({*windows_of(alert.pair for alert in alerts), BASE_S})
    records = [rule for window in windows for rule in _window_rules(window, labels, source.events)]
    records += count_rules(alerts, windows, source.events, labels)
    records += _budget_rules(watch, objective, labels)
    burns = [burn_rule(slo, watch, objective, labels, alert) for alert in alerts]
    return {"name": f"{slo.name}-{labels['objective']}", "rules": once([*source.rules, *records, *burns])}


def _window_rules(window: int, labels: dict[str, str], events: Events) -> list[Rule]:
    text = window_text(window)
    all_of_them, bad = (recorded(f"{what}:rate{text}", labels) for what in ("events", "bad"))
    if window <= max(BASE_S, events.raw_up_to_s):
        expressions = (events.rate(text), events.bad_rate(text))
    else:
        expressions = (
            f"avg_over_time({base('events', labels)}[{text}])",
            f"avg_over_time({base('bad', labels)}[{text}])",
        )
    return [
        record(f"events:rate{text}", expressions[0], labels),
        record(f"bad:rate{text}", expressions[1], labels),
        record(f"bad:ratio{text}", f"{bad} / ({all_of_them} > 0)", labels),
    ]


def _budget_rules(watch: Watch, objective: Objective, labels: dict[str, str]) -> list[Rule]:
    period = watch.period_text
    before, everything, failed = period_sums(watch, labels)
    spent = f"{failed} / ({everything} > 0)"
    if watch.calendar is not None:
        spent = f"max without (calendar) ({spent})"
    ratio = record(f"bad:ratio{period}", spent, labels)
    return [*before, ratio, *against_target(as_written(objective.target), period, labels)]
