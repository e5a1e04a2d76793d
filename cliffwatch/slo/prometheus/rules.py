"""Prometheus rules of an SLO file: events and bad events as records, their ratio by window, budget left, burn alerts.

Ratios over long windows are sums of bad events over sums of events, so that idle hours weigh nothing, and no record is
ever NaN: a window without events has no ratio.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cliffwatch.errors import InputError
from cliffwatch.slo.burn import STANDARD_PAIRS, BurnAlert, burn_alert, error_budget
from cliffwatch.slo.prometheus.alerts import Rule, burn_rule, percent
from cliffwatch.slo.prometheus.events import Events, events_of
from cliffwatch.slo.prometheus.health import health_rules
from cliffwatch.slo.prometheus.promql import selector, window_text
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch

BASE_S = 300
RAW_UP_TO_S = 3600  # longer windows are sums of the 5-minute records: reading days of raw buckets costs too much
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Rules of one file, and what its reader should know."""

    groups: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    series: str


def compile_rules(slo: SloFile, *, source: str = "SLO file") -> Compiled:
    """Rule groups for Prometheus. Raises InputError where `watch` is missing or an objective cannot be watched."""
    watch = slo.watch
    if not _NAME.fullmatch(slo.name):
        allowed = "letters, digits, dot, dash, underscore: it is a label's value and part of rule names"
        raise InputError("cannot name rules", file=source, field="name", value=slo.name, allowed=allowed)
    if watch is None:
        raise InputError("is missing", file=source, field="watch", allowed="watch: {engine: vllm, match: {job: ...}}")
    notes: list[str] = []
    groups: list[dict[str, Any]] = []
    for number, objective in enumerate(slo.objectives):
        try:
            events = events_of(objective, watch, field=f"objectives[{number}]")
        except InputError as error:
            raise InputError(
                error.message, file=source, field=error.field, value=error.value, allowed=error.allowed
            ) from error
        alerts = [burn_alert(pair, _target(objective), round(watch.period)) for pair in STANDARD_PAIRS]
        notes += [f"{objective.label}: {note}" for note in (*events.notes, *_mended(alerts, objective))]
        groups.append(_group(slo, watch, objective, events, alerts))
    groups.append({"name": f"{slo.name}-health", "rules": health_rules(slo.name, watch)})
    records = sum("record" in rule for group in groups for rule in group["rules"])
    per = f" for each value of {', '.join(watch.group_by)}" if watch.group_by else ""
    return Compiled(tuple(groups), tuple(dict.fromkeys(notes)), f"{records} series{per}")


def objective_id(objective: Objective) -> str:
    """A label value that tells an objective from the others of its file, such as `ttft-2.5s-95pct`."""
    threshold = "" if objective.threshold is None else f"-{objective.threshold:g}s"
    return f"{objective.sli.value}{threshold}-{percent(objective.target).removesuffix(' %')}pct"


def _target(objective: Objective) -> Decimal:
    return Decimal(repr(objective.target))


def _mended(alerts: list[BurnAlert], objective: Objective) -> list[str]:
    return [
        f"a burn rate of {alert.mended_from.normalize():.4g} over {window_text(alert.pair.long_s)} is out of reach for "
        f"a target of {percent(objective.target)}; it alerts from {alert.factor:.4g} on, half of the events bad"
        for alert in alerts
        if alert.mended_from is not None
    ]


def _group(slo: SloFile, watch: Watch, objective: Objective, events: Events, alerts: list[BurnAlert]) -> dict[str, Any]:
    """One group: Prometheus evaluates its rules in order, so that alerts and boards see the same moment."""
    labels = {"slo": slo.name, "objective": objective_id(objective)}
    windows = sorted({window for alert in alerts for window in (alert.pair.long_s, alert.pair.short_s)} | {BASE_S})
    records = [rule for window in windows for rule in _window_rules(window, labels, events)]
    records += _budget_rules(watch, objective, labels)
    burns = [burn_rule(slo, watch, objective, labels, alert) for alert in alerts]
    return {"name": f"{slo.name}-{labels['objective']}", "rules": [*records, *burns]}


def _window_rules(window: int, labels: dict[str, str], events: Events) -> list[Rule]:
    text = window_text(window)
    all_of_them, bad = (selector(f"cliffwatch_slo:{what}:rate{text}", labels) for what in ("events", "bad"))
    if window <= RAW_UP_TO_S:
        expressions = (events.rate(text), events.bad_rate(text))
    else:
        base = [selector(f"cliffwatch_slo:{what}:rate{window_text(BASE_S)}", labels) for what in ("events", "bad")]
        expressions = (f"avg_over_time({base[0]}[{text}])", f"avg_over_time({base[1]}[{text}])")
    return [
        _record(f"cliffwatch_slo:events:rate{text}", expressions[0], labels),
        _record(f"cliffwatch_slo:bad:rate{text}", expressions[1], labels),
        _record(f"cliffwatch_slo:bad:ratio{text}", f"{bad} / ({all_of_them} > 0)", labels),
    ]


def _budget_rules(watch: Watch, objective: Objective, labels: dict[str, str]) -> list[Rule]:
    period = watch.period_text
    base = [selector(f"cliffwatch_slo:{what}:rate{window_text(BASE_S)}", labels) for what in ("events", "bad")]
    spent = f"sum_over_time({base[1]}[{period}]) / (sum_over_time({base[0]}[{period}]) > 0)"
    budget = error_budget(_target(objective))
    return [
        _record(f"cliffwatch_slo:bad:ratio{period}", spent, labels),
        _record(
            "cliffwatch_slo:budget_left:ratio",
            f"1 - {selector(f'cliffwatch_slo:bad:ratio{period}', labels)} / {budget:f}",
            {**labels, "period": period},
        ),
        _record("cliffwatch_slo:target:ratio", f"vector({_target(objective):f})", {**labels, "period": period}),
    ]


def _record(name: str, expression: str, labels: dict[str, str]) -> Rule:
    return {"record": name, "expr": expression, "labels": labels}
