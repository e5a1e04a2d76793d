"""What the compiled rules would have done over a history: alerts with their times, budget, time in each state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cliffwatch.slo.backtest.history import Flags, Floats, Grid, Indexes, What
from cliffwatch.slo.burn import BurnAlert, Severity, error_budget
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.record import BASE_S
from cliffwatch.slo.watch import Calendar


class State(StrEnum):
    """What an objective is in at an instant; of several the first holds."""

    PAGE = "page"
    TICKET = "ticket"
    NO_DATA = "no_data"
    NO_TRAFFIC = "no_traffic"
    QUIET = "quiet"


class Past(Protocol):
    """One group's history, of an objective or of a composite; see `History`."""

    @property
    def grid(self) -> Grid: ...
    @property
    def first_known(self) -> int | None: ...
    def rate(self, what: What, window_s: int) -> Floats: ...
    def ratio(self, window_s: int) -> Floats: ...
    def ratio_since(self, begins: Indexes) -> Floats: ...
    def count(self, what: What, begins: Indexes) -> Floats: ...
    def bad_events(self, window_s: int) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Promise:
    """What a history is held to: a target, its budget's period (the last `period_s`, or the calendar's so far), and the
    alerts on it."""

    target: Decimal
    period_s: int
    alerts: tuple[BurnAlert, ...]
    min_bad_events: float
    calendar: Calendar | None = None


@dataclass(frozen=True, slots=True)
class Firing:
    """One alert from its first to its last evaluation above both limits. Times are Unix seconds.

    Attributes:
        start_s: of the first evaluation at which it fires; where `open_start`, it may have fired before the span.
        end_s: of the first evaluation at which it no longer fires; None where the span ends first.
        peak_burn_rate: the highest over the alert's short window.
        bad_events: the most in its long window, which `min_bad_events` is held against.
        budget_left: share of the budget left at its start; None where the history before it is shorter than the period.
    """

    alert: str
    severity: Severity
    labels: Mapping[str, str]
    start_s: float
    end_s: float | None
    open_start: bool
    peak_burn_rate: float
    bad_events: float
    budget_left: float | None


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget at each replayed instant, over the period that ends there; NaN where nothing is known.

    Attributes:
        left_so_far: share left, of those events that the history holds; negative when overspent.
        events: how many those are.
        complete_from_s: from when the history before an instant holds its whole period; None: never in this span.
            Before that, `left_so_far` is the budget of a shorter period.
    """

    left_so_far: Floats
    events: Floats
    complete_from_s: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without data, in which nothing is known."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """One group of one objective over the span; `states` holds the place in `State` at each instant."""

    labels: Mapping[str, str]
    grid: Grid
    firings: tuple[Firing, ...]
    budget: Budget
    states: NDArray[np.int8]
    gaps: tuple[Gap, ...]

    def left_at(self, index: int) -> float | None:
        """Share of the budget that is left at a replayed instant; None where it is not known for the whole period."""
        complete = self.budget.complete_from_s
        left = float(self.budget.left_so_far[index])
        return None if complete is None or self.grid.at(index) < complete or np.isnan(left) else left

    @property
    def state_s(self) -> dict[State, float]:
        """Seconds in each state."""
        counts = np.bincount(self.states, minlength=len(State))
        return {state: float(count) * self.grid.step_s for state, count in zip(State, counts, strict=True)}

    @property
    def spent_s(self) -> float:
        """Seconds with a budget, of the history so far, that was spent or overspent."""
        return float(np.count_nonzero(self.budget.left_so_far <= 0)) * self.grid.step_s


def replay(history: Past, promise: Promise, labels: Mapping[str, str]) -> Replayed:
    """What rules with these alerts would have done, had they been loaded since the history begins."""
    budget = _budget(history, promise)
    firing = {alert: _firing(history, promise, alert) for alert in promise.alerts}
    bare = Replayed(labels, history.grid, (), budget, _states(history, firing), tuple(_gaps(history)))
    fired = [one for alert, flags in firing.items() for one in _firings(bare, history, promise, alert, flags)]
    return replace(bare, firings=in_order(fired))


def _firing(history: Past, promise: Promise, alert: BurnAlert) -> Flags:
    """The alert's expression at each instant; a comparison with what is absent is false."""
    long_s, short_s = alert.pair.long_s, alert.pair.short_s
    ratio = float(alert.ratio)
    flags: Flags = (
        (history.ratio(long_s) > ratio)
        & (history.ratio(short_s) > ratio)
        & (history.bad_events(long_s) >= promise.min_bad_events)
    )
    return flags


def _firings(bare: Replayed, history: Past, promise: Promise, alert: BurnAlert, flags: Flags) -> Iterator[Firing]:
    grid, long_s = bare.grid, alert.pair.long_s
    runs = list(_runs(flags))
    if not runs:
        return
    rates = history.ratio(alert.pair.short_s) / float(error_budget(promise.target))
    bad = history.bad_events(long_s)
    for first, after in runs:
        yield Firing(
            alert=alert_name(alert.pair),
            severity=alert.pair.severity,
            labels=bare.labels,
            start_s=grid.at(first),
            end_s=grid.at(after) if after < grid.replayed else None,
            open_start=first == 0,
            peak_burn_rate=float(np.nanmax(rates[first:after])),
            bad_events=float(np.nanmax(bad[first:after])),
            budget_left=bare.left_at(first),
        )


def _runs(flags: Flags) -> Iterator[tuple[int, int]]:
    """First index, and index after the last, of each unbroken run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _budget(history: Past, promise: Promise) -> Budget:
    grid = history.grid
    begins = grid.begins(promise.period_s) if promise.calendar is None else grid.calendar_begins(promise.calendar)
    left = 1 - history.ratio_since(begins) / float(error_budget(promise.target))
    first = history.first_known
    whole = np.flatnonzero(begins[grid.lead :] >= first) if first is not None else np.array([])
    return Budget(left, history.count("events", begins), grid.at(int(whole[0])) if len(whole) else None)


def _states(history: Past, firing: Mapping[BurnAlert, Flags]) -> NDArray[np.int8]:
    events = history.rate("events", BASE_S)
    holds = {State.NO_DATA: np.isnan(events), State.NO_TRAFFIC: events == 0, State.QUIET: events > 0}
    for severity, state in ((Severity.PAGE, State.PAGE), (Severity.TICKET, State.TICKET)):
        flags = [one for alert, one in firing.items() if alert.pair.severity is severity]
        holds[state] = np.any(flags, axis=0) if flags else np.zeros(len(events), np.bool_)
    states: NDArray[np.int8] = np.argmax([holds[state] for state in State], axis=0).astype(np.int8)
    return states


def _gaps(history: Past) -> Iterator[Gap]:
    grid = history.grid
    for first, after in _runs(np.isnan(history.rate("events", BASE_S))):
        yield Gap(grid.at(first), grid.at(min(after, grid.replayed - 1)))


def in_order(firings: Iterable[Firing]) -> tuple[Firing, ...]:
    """By time, as they would have arrived."""
    return tuple(sorted(firings, key=lambda one: (one.start_s, one.alert)))
