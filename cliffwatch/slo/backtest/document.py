"""A backtest as JSON, and its budget curve as CSV. What is not known is null, or an empty cell."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from cliffwatch.slo.backtest.composed import Composition
from cliffwatch.slo.backtest.history import Grid
from cliffwatch.slo.backtest.incidents import Incident, Rate, Score
from cliffwatch.slo.backtest.replay import Firing, Replayed, State
from cliffwatch.slo.backtest.subject import Subject
from cliffwatch.slo.backtest.times import utc_iso
from cliffwatch.slo.backtest.whatif import Outcome
from cliffwatch.slo.burn import Severity
from cliffwatch.slo.prometheus.promise import Promise

CURVE_POINTS = 500
CSV_HEAD = ("time", "objective", "group", "state", "budget_left", "budget_left_so_far", "events")


@dataclass(frozen=True, slots=True)
class Backtest:
    """One objective, or composite, over the span: as its file has it, and the other cases that were asked for.

    `own` is None where Prometheus has no data of it.
    """

    one: Subject | Composition
    own: Outcome | None
    what_if: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """What all objectives share: the span, the incidents in it (None: no file given) and how they are matched, what the
    server warned of, and what was left out."""

    grid: Grid
    incidents: tuple[Incident, ...] | None
    match_within_s: float
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()


def document(tests: Sequence[Backtest], span: Span) -> dict[str, Any]:
    """Everything for machines; times in UTC."""
    return {
        "from": utc_iso(span.grid.at(0)),
        "to": utc_iso(span.grid.end_s),
        "every_s": span.grid.step_s,
        "incidents": None if span.incidents is None else len(span.incidents),
        "match_within_s": span.match_within_s,
        "warnings": list(span.warnings),
        "notes": list(span.notes),
        "objectives": [_objective(one) for one in tests if isinstance(one.one, Subject)],
        "composites": [_objective(one) for one in tests if isinstance(one.one, Composition)],
    }


def _objective(test: Backtest) -> dict[str, Any]:
    one, own = test.one, test.own
    return {
        "objective": one.id,
        "label": one.promise.label,
        "period": one.watch.period_text,
        "counted": counted(one.promise),
        "min_bad_events": one.min_bad_events,
        "notes": list(one.notes),
        "result": None if own is None else _outcome(own),
        "groups": [] if own is None else [_group(group) for group in own.groups],
        "what_if": [_outcome(case) for case in test.what_if],
    }


def counted(promise: Promise) -> str:
    """What its target is a share of."""
    return "slices" if promise.slices else "events"


def _outcome(one: Outcome) -> dict[str, Any]:
    return {
        "target": one.case.objective.target,
        "threshold_s": one.case.threshold,
        "windows": one.case.windows,
        "pages": len(one.of(Severity.PAGE)),
        "tickets": len(one.of(Severity.TICKET)),
        "budget_left": one.budget_left,
        "scores": None if one.scores is None else {name: _score(score) for name, score in one.scores.items()},
    }


def _score(one: Score) -> dict[str, Any]:
    return {
        "precision": _rate(one.precision),
        "recall": _rate(one.recall),
        "incidents": [
            {
                "name": found.incident.name,
                "start": utc_iso(found.incident.start),
                "alert": found.alert,
                "delay_s": found.delay_s,
            }
            for found in one.found
        ],
    }


def _rate(one: Rate) -> dict[str, Any]:
    low, high = one.interval or (None, None)
    return {"value": one.value, "hits": one.hits, "n": one.n, "low": low, "high": high}


def _group(one: Replayed) -> dict[str, Any]:
    grid, budget = one.grid, one.budget
    last = grid.replayed - 1
    every = max(1, math.ceil(grid.replayed / CURVE_POINTS))
    return {
        "labels": dict(one.labels),
        "firings": [_firing(firing) for firing in one.firings],
        "budget": {
            "left": one.left_at(last),
            "left_so_far": known(budget.left_so_far[last]),
            "events": known(budget.events[last]),
            "complete_from": None if budget.complete_from_s is None else utc_iso(budget.complete_from_s),
            "spent_s": one.spent_s,
            "curve": [_point(one, at) for at in range(0, grid.replayed, every)],
        },
        "state_s": {state.value: seconds for state, seconds in one.state_s.items()},
        "gaps": [{"start": utc_iso(gap.start_s), "end": utc_iso(gap.end_s)} for gap in one.gaps],
    }


def _firing(one: Firing) -> dict[str, Any]:
    return {
        "alert": one.alert,
        "severity": one.severity.value,
        "start": utc_iso(one.start_s),
        "end": None if one.end_s is None else utc_iso(one.end_s),
        "maybe_before": one.open_start,
        "peak_burn_rate": one.peak_burn_rate,
        "bad_events": one.bad_events,
        "budget_left": one.budget_left,
    }


def _point(one: Replayed, at: int) -> dict[str, Any]:
    return {
        "time": utc_iso(one.grid.at(at)),
        "state": tuple(State)[one.states[at]].value,
        "left": one.left_at(at),
        "left_so_far": known(one.budget.left_so_far[at]),
        "events": known(one.budget.events[at]),
    }


def known(value: float) -> float | None:
    """A number, or None where it is not one."""
    return float(value) if math.isfinite(value) else None


def write_curves(stream: TextIO, tests: Iterable[Backtest]) -> None:
    """The budget at every instant of evaluation, a row each."""
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(CSV_HEAD)
    for test in tests:
        for group in test.own.groups if test.own is not None else ():
            name = ",".join(f"{label}={value}" for label, value in group.labels.items())
            for at in range(group.grid.replayed):
                point = _point(group, at)
                figures = (point["state"], point["left"], point["left_so_far"], point["events"])
                table.writerow((point["time"], test.one.id, name, *figures))
