"""A foreign file becomes an SLO file: an SLI of the catalog where its metric is a known engine's, else PromQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cliffwatch.config import check_config
from cliffwatch.engines.catalog import engine, engines
from cliffwatch.slo.foreign.document import ForeignFile, Pledge, outside_strings
from cliffwatch.slo.prometheus.events import in_unit
from cliffwatch.slo.spec import SloFile
from cliffwatch.slo.watch import labels_known

_SPACE = re.compile(r"\s+")
_RATE = r"sum(?:by\([\w,]+\))?\(rate\(([a-zA-Z_:][\w:]*)_{kind}(?:\{{([^{{}}]*)\}})?\[\{{window\}}\]\)\)"
_ALL = re.compile(_RATE.format(kind="count"))
_BAD = re.compile(rf"\(*{_RATE.format(kind='count')}-{_RATE.format(kind='bucket')}\)*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="([^"\\]*)",?')


@dataclass(frozen=True, slots=True)
class Imported:
    """An SLO file, and what could not be kept."""

    slo: SloFile
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    engine: str
    sli: str
    threshold_s: float
    match: dict[str, str]


def take(foreign: ForeignFile, *, engine_name: str | None, source: str) -> Imported:
    """Raises InputError where what it promises cannot be an SLO file."""
    notes = list(foreign.notes)
    found = [(pledge, _known(pledge)) for pledge in foreign.pledges]
    chosen = next((known for _, known in found if known and engine_name in {None, known.engine}), None)
    objectives: list[dict[str, Any]] = []
    for pledge, known in found:
        same = known is not None and chosen is not None and (known.engine, known.match) == (chosen.engine, chosen.match)
        indicator: dict[str, Any] = {"sli": "promql", "promql": {"all": pledge.all_of_them, "bad": pledge.bad}}
        if known is not None and same:
            indicator = {"sli": known.sli, "threshold": known.threshold_s}
            notes.append(f"{pledge.name}: is {known.sli} of {engine(known.engine).title}")
        slices = {} if pledge.slices is None else {"slices": pledge.slices}
        objectives.append({"name": pledge.name, **indicator, "target": pledge.target, **slices})
    document: dict[str, Any] = {"name": foreign.name, "description": foreign.description, "objectives": objectives}
    name = engine_name or (chosen.engine if chosen else None)
    if name is None:
        notes.append("has no `watch`, which rules need: --engine names the engine")
        notes += [f"not kept without a watch: {key} {value}" for key, value in foreign.period.items()]
        notes += [f"not kept without a watch: group_by {label}" for label in foreign.group_by]
    else:
        document["watch"] = _watch(name, chosen.match if chosen else {}, foreign)
    return Imported(check_config(document, SloFile, source=source), tuple(notes))


def _watch(name: str, match: dict[str, str], foreign: ForeignFile) -> dict[str, Any]:
    known = labels_known(engine(name))
    added = [label for label in dict.fromkeys((*match, *foreign.group_by)) if label not in known]
    return {"engine": name, "match": match, "group_by": foreign.group_by, "target_labels": added, **foreign.period}


def _known(pledge: Pledge) -> _Known | None:
    """A latency of a known engine: all events less those in the bucket of one edge."""
    every = _ALL.fullmatch(outside_strings(pledge.all_of_them, _SPACE, ""))
    bad = _BAD.fullmatch(outside_strings(pledge.bad, _SPACE, ""))
    if every is None or bad is None or every.groups() != bad.groups()[:2] or bad[3] != every[1]:
        return None
    match, bucket = _labels(every[2]), _labels(bad[4])
    if match is None or bucket is None or {**match, "le": bucket.get("le", "")} != bucket:
        return None
    for one in engines():
        for sli, source in one.slis.items():
            if every[1] in source.metrics and source.without is None and one.metric(every[1]).type == "histogram":
                edge = _edge(bucket["le"])
                return None if edge is None else _Known(one.name, sli, edge / in_unit(1, one.metric(every[1])), match)
    return None


def _labels(text: str | None) -> dict[str, str] | None:
    """Labels with exact values; None where it has matchers of another kind."""
    found = _LABEL.findall(text or "")
    return dict(found) if ",".join(f'{label}="{value}"' for label, value in found) == (text or "").rstrip(",") else None


def _edge(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d+)?", text) else None
