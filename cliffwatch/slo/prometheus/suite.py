"""Scenarios as promtool's test files, and what promtool says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cliffwatch.slo.prometheus.feed import Feed, Pod, Series
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.prometheus.scenarios import ABSENT_ALERT, Check, Sample, Scenario

_TOLERANCE = Decimal("0.001")  # of a record's value
_FAILURE = re.compile(r'^\s*expr: (?P<asked>".*"), time: (?P<time>\w+),\s*$')
_GOT = re.compile(r"^\s*got:.*\} (?P<value>\S+)$")
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w|y)")
_MINUTES = {"ms": 1 / 60_000, "s": 1 / 60, "m": 1, "h": 60, "d": 1440, "w": 10_080, "y": 525_600}

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """What promtool was asked at a minute, and the other value that it got; None: no sample."""

    asked: str
    minute: int
    got: float | None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a suite is about: series of its own, labels of the rules that it asks for; `of`: a composite's parts."""

    feed: Feed
    slo: str
    objective: str
    of: tuple[str, ...] = ()

    @property
    def order(self) -> Document:
        """A composite reads what its parts record: left alone, promtool evaluates groups in any order."""
        return {"group_eval_order": [f"{self.slo}-{name}" for name in (*self.of, self.objective)]} if self.of else {}

    def alerting(self, alert: str) -> str:
        """Its firing alerts of a name. Those on missing metrics are the file's, not one objective's."""
        labels = {"alertname": alert, "alertstate": "firing", "slo": self.slo}
        return selector("ALERTS", labels if alert == ABSENT_ALERT else {**labels, "objective": self.objective})

    def recorded(self, record: str) -> str:
        return selector(record, {"slo": self.slo, "objective": self.objective})

    def series(self, pods: Iterable[Pod]) -> Series:
        return {name: values for pod in pods for name, values in self.feed.series(pod).items()}


def by_step(scenarios: Sequence[Scenario]) -> dict[int, list[Scenario]]:
    """Scenarios by their step in minutes: promtool has one evaluation interval a file."""
    steps = sorted({scenario.step for scenario in scenarios})
    return {step: [one for one in scenarios if one.step == step] for step in steps}


def document(rule_file: str, step: int, scenarios: Sequence[Scenario], subject: Subject) -> Document:
    """A test file of scenarios that have this step."""
    return _file(
        rule_file, step, subject, [_test(one, subject, list(_expectations(one, subject))) for one in scenarios]
    )


def first_times(rule_file: str, step: int, asked: Sequence[tuple[Scenario, str]], subject: Subject) -> Document:
    """A test file that fails by intent: what promtool got is when each alert fired first, in seconds."""
    return _file(rule_file, step, subject, [
        _test(scenario, subject, [_expectation(first_time(alert, scenario, subject), scenario.minutes, None)])
        for scenario, alert in asked
    ])  # fmt: skip


def first_time(alert: str, scenario: Scenario, subject: Subject) -> str:
    """The time at which an alert fired first, in seconds from the scenario's first minute; no sample: never."""
    span = f"{scenario.minutes + 1}m:{scenario.step}m"
    return f"min(min_over_time(timestamp({subject.alerting(alert)})[{span}])) # {scenario.name}"


def question(scenario: Scenario, each: Check | Sample, subject: Subject) -> str:
    """What promtool is asked: one number, so that labels and rounding do not matter.

    The scenario's name is a comment in it, since promtool does not say in which test an expression failed.
    """
    if isinstance(each, Check):
        asked = f"count({subject.alerting(each.alert)}) or vector(0)"
    else:
        asked = f"max({subject.recorded(each.record)})"
        if each.value is not None:
            allowed = max(abs(each.value) * _TOLERANCE, Decimal("1e-9"))
            asked = f"abs({asked} - {_plain(each.value)}) <= bool {_plain(allowed)}"
    return f"{asked} # {scenario.name}"


def failures(output: str) -> Iterator[Failure]:
    """What promtool printed of expectations that do not hold."""
    found = None
    for line in output.splitlines():
        if failed := _FAILURE.match(line):
            found = (json.loads(failed["asked"]), round(_minutes(failed["time"])))
        elif found and line.lstrip().startswith("got:"):
            got = _GOT.match(line)
            yield Failure(*found, float(got["value"]) if got else None)
            found = None


def _expectations(scenario: Scenario, subject: Subject) -> Iterator[Document]:
    for each in scenario.expected:
        if isinstance(each, Check):
            value: float | None = float(each.firing)
        else:
            value = None if each.value is None else 1.0
        yield _expectation(question(scenario, each, subject), each.minute, value)


def _expectation(asked: str, minute: int, value: float | None) -> Document:
    samples = [] if value is None else [{"labels": "{}", "value": value}]
    return {"expr": asked, "eval_time": f"{minute}m", "exp_samples": samples}


def _test(scenario: Scenario, subject: Subject, expectations: list[Document]) -> Document:
    series = subject.series(scenario.pods)
    return {
        "name": scenario.name,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": expectations,
    }


def _file(rule_file: str, step: int, subject: Subject, tests: list[Document]) -> Document:
    return {"rule_files": [rule_file], "evaluation_interval": f"{step}m", **subject.order, "tests": tests}


def _minutes(duration: str) -> float:
    return sum(int(count) * _MINUTES[unit] for count, unit in _DURATION.findall(duration))


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}" if number else "0"
