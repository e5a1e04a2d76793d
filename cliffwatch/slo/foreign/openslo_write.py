"""An SLO file as OpenSLO v1. What OpenSLO has no word for stands in annotations, so that nothing is lost.

https://github.com/OpenSLO/OpenSLO: a Service, and one SLO for each objective. Targets, periods and slices stand where
OpenSLO has them, and are read from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.events import events_of
from cliffwatch.slo.prometheus.files import plain
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.rules import burn_alerts
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Calendar
from cliffwatch.units import format_range

API = "openslo/v1"
FILE, OBJECTIVE, ALERTS = (f"cliffwatch/{name}" for name in ("file", "objective", "burn-alerts"))
MOST_DESCRIPTION = 1050
CALENDARS = {Calendar.WEEK: "1w", Calendar.MONTH: "1M", Calendar.QUARTER: "1Q"}
_BEGINNING = "2024-01-01 00:00:00"  # of a week, a month and a quarter
_RANGE = "5m"


def openslo_documents(slo: SloFile) -> list[dict[str, Any]]:
    """A Service, then an SLO for each objective, in the file's order."""
    service = _rfc1123(slo.name)
    names: set[str] = set()
    found = [_service(slo, service)]
    for number, one in enumerate(slo.objectives, start=1):
        name = _rfc1123(f"{service}-{one.name or one.label}")
        if name in names:
            name = f"{name[:59]}-{number}"
        names.add(name)
        found.append(_slo(slo, one, name=name, service=service))
    return found


def openslo_text(slo: SloFile) -> str:
    """The same as YAML."""
    head = "# Written by cliffwatch slo export; cliffwatch slo import reads it back without loss.\n"
    return head + "---\n".join(map(plain, openslo_documents(slo)))


def _service(slo: SloFile, name: str) -> dict[str, Any]:
    leave_out: dict[str, Any] = {"name": True, "objectives": True, "watch": {"period", "calendar"}}
    if len(slo.description) <= MOST_DESCRIPTION:
        leave_out["description"] = True
    rest = slo.model_dump(mode="json", exclude_defaults=True, exclude=leave_out)
    return {
        "apiVersion": API,
        "kind": "Service",
        "metadata": {"name": name, "displayName": slo.name, "annotations": {FILE: _json(rest)}},
        "spec": {"description": slo.description[:MOST_DESCRIPTION]},
    }


def _slo(slo: SloFile, one: Objective, *, name: str, service: str) -> dict[str, Any]:
    rest = one.model_dump(mode="json", exclude_defaults=True, exclude={"target": True, "slices": {"length", "share"}})
    annotations = {OBJECTIVE: _json(rest)}
    if slo.watch is not None:
        annotations[ALERTS] = _json(list(_alerts(slo, one)))
    return {
        "apiVersion": API,
        "kind": "SLO",
        "metadata": {"name": name, "displayName": one.label, "annotations": annotations},
        "spec": {
            "service": service,
            "indicator": {"metadata": {"name": f"{name[:59]}-sli"}, "spec": {"ratioMetric": _ratio(slo, one)}},
            **_window(slo),
            "budgetingMethod": "Timeslices" if one.slices else "Occurrences",
            "objectives": [{"displayName": one.label, "target": one.target, **_slices(one)}],
        },
    }


def _slices(one: Objective) -> dict[str, Any]:
    if one.slices is None:
        return {}
    share = 1 if one.slices.share is None else one.slices.share
    return {"timeSliceTarget": share, "timeSliceWindow": format_range(one.slices.length)}


def _window(slo: SloFile) -> dict[str, Any]:
    if slo.watch is None:
        return {}
    if slo.watch.calendar is None:
        return {"timeWindow": [{"duration": format_range(slo.watch.period), "isRolling": True}]}
    calendar = {"startTime": _BEGINNING, "timeZone": "UTC"}
    return {"timeWindow": [{"duration": CALENDARS[slo.watch.calendar], "calendar": calendar, "isRolling": False}]}


def _ratio(slo: SloFile, one: Objective) -> dict[str, Any]:
    """Bad and all events: as PromQL where an engine counts them, else by our own name for them."""
    kind, bad, total = "cliffwatch", *_named(one)
    if slo.watch is not None and one.sli is not Sli.THROUGHPUT:  # which has time, and no events
        try:
            events = events_of(one, slo.watch, field="")
        except InputError:
            pass  # load runs know it; what rules cannot tell is refused when they are compiled
        else:
            kind, bad, total = "Prometheus", {"query": events.bad_rate(_RANGE)}, {"query": events.rate(_RANGE)}
    sources = {"bad": bad, "total": total}
    return {"counter": True, **{key: {"metricSource": {"type": kind, "spec": spec}} for key, spec in sources.items()}}


def _named(one: Objective) -> tuple[dict[str, Any], dict[str, Any]]:
    if one.promql is not None:
        return {"query": one.promql.bad}, {"query": one.promql.all}
    above = {} if one.threshold is None else {"above_s": one.threshold}
    return {"sli": one.sli.value, "events": "bad", **above}, {"sli": one.sli.value, "events": "all"}


def _alerts(slo: SloFile, one: Objective) -> Iterator[dict[str, Any]]:
    """For readers alone: alerts follow from target and period."""
    assert slo.watch is not None  # noqa: S101  asked before
    for alert in burn_alerts(one, slo.watch):
        pair = alert.pair
        yield {
            "name": alert_name(pair),
            "severity": pair.severity.value,
            "windows": [window_text(pair.long_s), window_text(pair.short_s)],
            "burn_rate": float(alert.factor),
        }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _rfc1123(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:63].strip("-") or "slo"
