"""Alerts proven able to fire: every objective's scenarios, run by promtool, and when each alert fires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Protocol

from cliffwatch.slo.burn import BurnAlert, error_budget
from cliffwatch.slo.prometheus.alerts import alert_name, least_bad
from cliffwatch.slo.prometheus.feed import Fed, NotFed
from cliffwatch.slo.prometheus.feeds import feed_of
from cliffwatch.slo.prometheus.files import test_file
from cliffwatch.slo.prometheus.rules import burn_alerts, objective_id
from cliffwatch.slo.prometheus.scenarios import (
    TABLE_SHARES,
    Check,
    Sample,
    Scenario,
    scenarios,
    table_name,
)
from cliffwatch.slo.prometheus.suite import Subject, by_step, document, failures, first_time, first_times, question
from cliffwatch.slo.prometheus.terms import Part, Terms, enough_events
from cliffwatch.slo.spec import Objective, SloFile
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written, format_seconds


class Promtool(Protocol):
    """Runs `promtool test rules` on a test file beside the rule file."""

    @property
    def rule_file(self) -> str:
        """The rule file's name as test files give it."""

    def test(self, name: str, text: str, *, keep: bool = True) -> str:
        """What it printed of expectations that do not hold; empty where all do.

        Raises:
            UnreachableError: it did not come to an end.
            InputError: it refused the rules.
        """


@dataclass(frozen=True, slots=True)
class Miss:
    """An expectation that does not hold.

    Attributes:
        about: an alert or a record.
        minute: of the scenario, whose trouble begins at `onset`.
        expected, seen: in words; `first_s`: when the alert fired first, in seconds after the onset; None: never.
    """

    scenario: str
    about: str
    minute: int
    onset: int
    expected: str
    seen: str
    first_s: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """When an alert fires at a share of bad events: `fires_after_s` None is never; `proven`: promtool agrees.

    Where the share is the alert's own threshold, rounding decides, and neither is claimed: `proven` is None.
    """

    bad: Decimal
    alert: str
    fires_after_s: float | None
    proven: bool | None


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found of one objective or composite.

    Attributes:
        key: its label `objective`; `label`: for people.
        target: None where its parts have their own.
        bad: what a share of bad events is a share of, in words.
        unproven: why nothing was tried.
    """

    key: str
    label: str
    target: float | None
    alerts: tuple[BurnAlert, ...]
    bad: str = ""
    table: tuple[Cell, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    misses: tuple[Miss, ...] = ()
    unproven: str | None = None

    @property
    def checks(self) -> int:
        return sum(len(one.expected) for one in self.scenarios)

    @property
    def proven(self) -> bool | None:
        """Whether everything was as computed; None where nothing was tried."""
        return None if self.unproven else not self.misses


def prove(slo: SloFile, watch: Watch, objective: Objective, promtool: Promtool) -> Proof:
    """Run all scenarios of an objective that compiles."""
    fed = feed_of(objective, watch)
    key, label, target = objective_id(objective), objective.label, objective.target
    if isinstance(fed, NotFed):
        return Proof(key, label, target, tuple(burn_alerts(objective, watch)), unproven=fed.why)
    terms = _terms(objective, watch, fed)
    tried = tuple(scenarios(terms))
    misses = run(Subject(fed.feed, slo.name, key), tried, promtool)
    return Proof(key, label, target, terms.alerts, fed.bad, tuple(cells(terms, misses)), tried, misses)


def run(subject: Subject, tried: Sequence[Scenario], promtool: Promtool) -> tuple[Miss, ...]:
    """Have promtool run scenarios; what did not hold."""
    misses: list[Miss] = []
    for step, some in by_step(tried).items():
        stem = f"{subject.slo}-{subject.objective}-every-{step}m"
        output = promtool.test(f"{stem}.test.yml", test_file(document(promtool.rule_file, step, some, subject)))
        misses += _misses(stem, step, some, subject, output, promtool)
    return tuple(misses)


def _terms(objective: Objective, watch: Watch, fed: Fed) -> Terms:
    alerts = tuple(burn_alerts(objective, watch))
    return Terms(
        alerts,
        error_budget(as_written(objective.target)),
        enough_events(alerts, watch.min_bad_events),
        failures_counted=fed.failures_counted,
        absence_told="running" in watch.catalog.signals,
        instances=fed.instances,
        from_records=watch.exclude.sleeping and objective.slices is None,
        min_bad_events=least_bad(objective, watch),
        parts=(Part(slices=fed.slices),),
    )


def cells(terms: Terms, misses: Sequence[Miss]) -> Iterator[Cell]:
    """The table of firing times, all parts having the same share of bad events."""
    wrong = {(miss.scenario, miss.about) for miss in misses}
    for share in TABLE_SHARES:
        for alert in terms.alerts:
            above, name = terms.compared(share, alert), alert_name(alert.pair)
            after_s = terms.fires_after_s(share, alert) if above > 0 else None
            confirmed = (table_name(share, alert if above > 0 else None), name) not in wrong
            yield Cell(share, name, after_s, confirmed if above else None)


def _misses(
    stem: str, step: int, some: Sequence[Scenario], subject: Subject, output: str, promtool: Promtool
) -> list[Miss]:
    """What did not hold; promtool is asked once more when those alerts did fire."""
    asked = {
        (question(scenario, each, subject), each.minute): (scenario, each)
        for scenario in some
        for each in scenario.expected
    }
    wrong = [(*asked[found.asked, found.minute], found.got) for found in failures(output)]
    alerts = {(scenario.name, each.alert): scenario for scenario, each, _ in wrong if isinstance(each, Check)}
    first: dict[tuple[str, str], float | None] = {}
    if alerts:
        probe = first_times(promtool.rule_file, step, [(one, alert) for (_, alert), one in alerts.items()], subject)
        output = promtool.test(f"{stem}.seen.yml", test_file(probe), keep=False)
        seen = {found.asked: found.got for found in failures(output)}
        first = {
            (name, alert): seen.get(first_time(alert, scenario, subject)) for (name, alert), scenario in alerts.items()
        }
    return [_miss(scenario, each, got, first) for scenario, each, got in wrong]


def _miss(
    scenario: Scenario, each: Check | Sample, got: float | None, first: Mapping[tuple[str, str], float | None]
) -> Miss:
    if isinstance(each, Sample):
        expected = "no sample" if each.value is None else f"{each.value.normalize():f}"
        seen = "another value" if got == 0 else "no sample" if got is None else f"{got:g}"
        return Miss(scenario.name, each.record, each.minute, scenario.onset, expected, seen, None)
    at = first.get((scenario.name, each.alert))
    first_s = None if at is None else at - 60 * scenario.onset
    seen = "never firing" if first_s is None else f"firing first {_after(first_s)}"
    return Miss(scenario.name, each.alert, each.minute, scenario.onset, _wanted(scenario, each), seen, first_s)


def _wanted(scenario: Scenario, check: Check) -> str:
    by = _after(60 * (check.minute - scenario.onset))
    words = f"{'firing' if check.firing else 'silent'} {by}"
    return words if check.expected_s is None else f"{words} (turns {_after(check.expected_s)})"


def _after(seconds: float) -> str:
    """A time of a scenario, whose trouble is what people count from."""
    if not seconds:
        return "at the onset"
    return f"{format_seconds(abs(seconds))} {'after' if seconds > 0 else 'before'} the onset"


def as_json(slo: str, version: str, proofs: Sequence[Proof], composites: Sequence[Proof] = ()) -> dict[str, Any]:
    """Everything that was found, durations in seconds, shares as numbers; null: never, or not known."""
    return {
        "slo": slo,
        "promtool": version,
        "passed": not any(proof.misses for proof in (*proofs, *composites)),
        "objectives": [_objective(proof) for proof in proofs],
        "composites": [_objective(proof) for proof in composites],
    }


def _objective(proof: Proof) -> dict[str, Any]:
    return {
        "objective": proof.key,
        "label": proof.label,
        "target": proof.target,
        "proven": proof.proven,
        "unproven": proof.unproven,
        "bad": proof.bad or None,
        "alerts": [
            {
                "alert": alert_name(alert.pair),
                "severity": alert.pair.severity.value,
                "long_s": alert.pair.long_s,
                "short_s": alert.pair.short_s,
                "fires_above": float(alert.ratio),
                "factor": float(alert.factor),
            }
            for alert in proof.alerts
        ],
        "table": [{**asdict(cell), "bad": float(cell.bad)} for cell in proof.table],
        "scenarios": [
            {"scenario": one.name, "says": one.says, "step_s": 60 * one.step, "checks": len(one.expected)}
            for one in proof.scenarios
        ],
        "misses": [asdict(miss) for miss in proof.misses],
    }
