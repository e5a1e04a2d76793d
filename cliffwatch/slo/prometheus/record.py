"""Recording rules, and the names of what they record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from cliffwatch.slo.burn import error_budget
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


def against_target(target: Decimal, period: str, labels: dict[str, str]) -> list[Rule]:
    """What is left of the budget, by the ratio over the period, and what is promised."""
    with_period = {**labels, "period": period}
    left = f"1 - {recorded(f'bad:ratio{period}', labels)} / {error_budget(target):f}"
    return [
        record("budget_left:ratio", left, with_period),
        record("target:ratio", f"vector({target:f})", with_period),
    ]


def once(rules: Iterable[Rule]) -> list[Rule]:
    """Rules without a second of a name and labels: a period of a day is a window of the alerts as well."""
    found: dict[tuple[object, ...], Rule] = {}
    for rule in rules:
        found.setdefault((rule.get("record"), rule.get("alert"), *sorted(rule["labels"].items())), rule)
    return list(found.values())
