"""Mistakes that make a board lie or stay empty, found in its JSON: `cliffwatch dashboards lint`.

Queries are read by shape, not parsed: Prometheus itself judges their syntax when the tests run every one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

_AGGREGATE = re.compile(r"\b(sum|avg|min|max|count|topk|bottomk|quantile|stddev)(\s+(by|without)\s*\([^()]*\))?\s*$")
_RISE = re.compile(r"\b(i?rate|increase|delta)\s*\(")
_SUM = re.compile(r"\b(?:i?rate|increase)\s*\(\s*(?!\w*token)[\w:]+_sum\b")
_AVERAGED_QUANTILE = re.compile(r"\bavg(_over_time)?\b[^/]*?(\bhistogram_quantile\b|\bquantile=)")
_USE = re.compile(r"\$(?:\{(\w+)[^}]*\}|(\w+))")


class Finding(BaseModel):
    """One mistake: in which panel (or variable), against which rule, and what to do."""

    model_config = ConfigDict(frozen=True)

    place: str
    rule: str
    says: str


def lint(board: dict[str, Any]) -> list[Finding]:
    """Every mistake of a board as Grafana stores it."""
    found = list(_unused(board))
    for panel in _panels(board):
        place = str(panel.get("title") or f"panel {panel.get('id')}")
        found += [Finding(place=place, rule=rule, says=says) for rule, bad, says in _OF_PANELS if bad(panel)]
        for target in panel.get("targets", ()):
            expr = str(target.get("expr", ""))
            found += [Finding(place=place, rule=rule, says=says) for rule, bad, says in _OF_QUERIES if bad(expr)]
    return found


def _panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels with data, those inside collapsed rows too."""
    for panel in board.get("panels", ()):
        yield from (one for one in (panel, *panel.get("panels", ())) if one.get("type") not in {"row", "text"})


def _unused(board: dict[str, Any]) -> Iterator[Finding]:
    variables = board.get("templating", {}).get("list", [])
    rest = json.dumps([board.get("panels"), [(one.get("datasource"), one.get("query")) for one in variables]])
    used = {first or second for first, second in _USE.findall(rest)}
    for variable in variables:
        if variable.get("name") not in used:
            yield Finding(place=f"${variable.get('name')}", rule="unused-variable", says="use it in a query or drop it")


def _unit(panel: dict[str, Any]) -> Any:
    options, defaults = panel.get("options", {}), panel.get("fieldConfig", {}).get("defaults", {})
    return options.get("yAxis", {}).get("unit") if panel.get("type") == "heatmap" else defaults.get("unit")


def _fixed(panel: dict[str, Any]) -> bool:
    sources = [part.get("datasource") or "" for part in (panel, *panel.get("targets", ()))]
    names = [source if isinstance(source, str) else str(source.get("uid", "")) for source in sources]
    return not all(name.startswith("$") for name in names)


def _lone_rise(expr: str) -> bool:
    """A rate that stands in no aggregation: a line a replica, and none of them the service's."""
    return any(not _aggregated(expr[: match.start()]) for match in _RISE.finditer(expr))


def _aggregated(before: str) -> bool:
    opened: list[str] = []
    for place, sign in enumerate(before):
        if sign == "(":
            opened.append(before[:place])
        elif sign == ")" and opened:
            opened.pop()
    return any(_AGGREGATE.search(text) for text in opened)


# rule, whether a panel breaks it, what to do
_OF_PANELS: tuple[tuple[str, Callable[[dict[str, Any]], bool], str], ...] = (
    ("missing-description", lambda panel: not panel.get("description"), "say what it shows and what to do"),
    ("missing-unit", lambda panel: not _unit(panel), "give the unit of its values"),
    ("fixed-data-source", _fixed, "take the data source from the board's variable"),
)
# rule, whether a query breaks it, what to do
_OF_QUERIES: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    (
        "undivided-sum",
        lambda expr: bool(_SUM.search(expr)) and "_count" not in expr,
        "divide by the rate of its _count",
    ),
    (
        "averaged-quantile",
        lambda expr: bool(_AVERAGED_QUANTILE.search(expr)),
        "take the quantile of summed buckets; quantiles have no mean",
    ),
    ("interval", lambda expr: "$__interval" in expr or "${__interval}" in expr, "use $__rate_interval"),
    ("unaggregated-rate", _lone_rise, "aggregate: sum by (...)"),
)
