"""Recording rules, and the names of what they record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cliffwatch.slo.prometheus.promql import selector, window_text

Rule = dict[str, Any]
BASE_S = 300


def record(name: str, expression: str, labels: dict[str, str]) -> Rule:
    """The rule that records `expression` as `cliffwatch_slo:NAME`."""
    return {"record": f"cliffwatch_slo:{name}", "expr": expression, "labels": labels}


def recorded(name: str, labels: Mapping[str, str]) -> str:
    """The series of `cliffwatch_slo:NAME`."""
    return selector(f"cliffwatch_slo:{name}", labels)


def base(what: str, labels: Mapping[str, str]) -> str:
    """The 5-minute rate of `events` or `bad` ones: what every longer window is made of."""
    return recorded(f"{what}:rate{window_text(BASE_S)}", labels)


def once(rules: Iterable[Rule]) -> list[Rule]:
    """Rules without a second of a name and labels: a period of a day is a window of the alerts as well."""
    found: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        found.setdefault((rule.get("record"), rule.get("alert"), *sorted(rule["labels"].items())), rule)
    return list(found.values())
