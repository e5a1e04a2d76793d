"""Rates of events and bad events in, the state of an objective out: attainment, budget, burn rates, what fires.

A burn counts only where both windows of its pair are above its limit, exactly as the compiled alert has it, so that
alert and view agree. What is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TypeGuard

from cliffwatch.slo.burn import BurnAlert, Severity, burn_rate, exhausted_after_s, windows_of
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.stats.wilson import wilson


class State(StrEnum):
    """What an objective is in, the worst first: of several the first is told."""

    EXHAUSTED = "exhausted"
    BURNING = "burning"
    STALE = "stale"
    NO_DATA = "no_data"
    MIXED_LAYOUT = "mixed_layout"
    NO_TRAFFIC = "no_traffic"
    GOOD = "good"


_RANK = {state: rank for rank, state in enumerate(State)}


def a_share(ratio: float) -> float:
    """Within 0 and 1: both sides of a ratio are extrapolated, and a file's own PromQL may count more bad than all."""
    return min(1.0, max(0.0, ratio))


@dataclass(frozen=True, slots=True)
class Flow:
    """Events and bad events a second, averaged over a window; where recorded their ratio, which of a composite is its
    own, and the count of bad ones, which a rate over a window that is recorded in part only does not tell."""

    events_per_s: float
    bad_per_s: float
    recorded_ratio: float | None = None
    recorded_bad: float | None = None

    def bad_in(self, window_s: int) -> float:
        """Bad events in the window."""
        return self.bad_per_s * window_s if self.recorded_bad is None else self.recorded_bad

    @property
    def bad_ratio(self) -> float | None:
        """Share of bad events; None without any event."""
        if self.events_per_s <= 0:
            return None
        return a_share(self.bad_per_s / self.events_per_s if self.recorded_ratio is None else self.recorded_ratio)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What Prometheus holds of one objective in one group.

    Attributes:
        windows: flow by window length, seconds; a window without samples is absent.
        period_bad_ratio: share of bad events over the whole period; None where unknown or without events.
        period_events: events counted over the period; None where unknown.
        mixed: some instances lack the threshold's bucket edge; their events count by the next lower edge.
    """

    windows: Mapping[int, Flow]
    period_bad_ratio: float | None = None
    period_events: float | None = None
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class BurnWindow:
    """One window: share of bad events and burn rate (None without events), and the events in it."""

    window_s: int
    bad_ratio: float | None
    burn_rate: float | None
    events: float | None


@dataclass(frozen=True, slots=True)
class Burn:
    """One pair of windows; `fires` exactly when the compiled alert of that name does."""

    alert: str
    severity: Severity
    limit: float
    long: BurnWindow
    short: BurnWindow
    fires: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """When the budget will be gone if events stay as bad as in the last `window_s`, seconds from now.

    `earliest_s` and `latest_s` follow from the Wilson 95 % interval of that share of bad events; `after_s` or
    `latest_s` None: never.
    """

    window_s: int
    after_s: float | None
    earliest_s: float | None
    latest_s: float | None


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """An objective in one group of `watch.group_by` (`labels` empty: everything in one budget).

    Attributes:
        attainment: share of good events over the period; `low` and `high` its Wilson 95 % interval over `events`.
        enough: at least as many events as the target needs; None where their number is unknown.
        budget_left: share of the period's budget, negative when overspent.
    """

    labels: Mapping[str, str]
    state: State
    attainment: float | None
    low: float | None
    high: float | None
    events: float | None
    enough: bool | None
    budget_left: float | None
    burns: tuple[Burn, ...]
    forecast: Forecast | None

    @property
    def firing(self) -> tuple[Burn, ...]:
        return tuple(burn for burn in self.burns if burn.fires)


@dataclass(frozen=True, slots=True)
class Terms:
    """What an objective promises, as far as its arithmetic goes.

    Attributes:
        needed: events from which an attainment says anything about this target.
        min_bad_events: what an alert needs in its long window.
    """

    target: Decimal
    period_s: int
    needed: int
    min_bad_events: int
    alerts: tuple[BurnAlert, ...] = field(default=())

    @property
    def windows(self) -> tuple[int, ...]:
        """Lengths of every window, seconds, ascending."""
        return windows_of(alert.pair for alert in self.alerts)


def group_status(labels: Mapping[str, str], evidence: Evidence, terms: Terms) -> GroupStatus:
    """The status of one group."""
    bad, events = evidence.period_bad_ratio, evidence.period_events
    left = None if bad is None else 1 - burn_rate(bad, terms.target)
    burns = tuple(_burn(alert, evidence, terms) for alert in terms.alerts)
    low, high = (None, None) if bad is None or not _some(events) else wilson((1 - bad) * events, events)
    return GroupStatus(
        labels=dict(labels),
        state=_state(evidence, terms, burns, left),
        attainment=None if bad is None else 1 - bad,
        low=low,
        high=high,
        events=events,
        enough=None if events is None else events >= terms.needed,
        budget_left=left,
        burns=burns,
        forecast=_forecast(evidence, terms, left),
    )


def worst(states: Iterable[State]) -> State:
    """The state of several together; `no_data` of none."""
    return min(states, key=_RANK.__getitem__, default=State.NO_DATA)


def _state(evidence: Evidence, terms: Terms, burns: tuple[Burn, ...], left: float | None) -> State:
    shortest = evidence.windows.get(min(terms.windows))
    found = {State.GOOD}
    if not evidence.windows and left is None:
        found.add(State.NO_DATA)
    elif shortest is None:
        found.add(State.STALE)
    elif shortest.events_per_s <= 0:
        found.add(State.NO_TRAFFIC)
    if evidence.mixed:
        found.add(State.MIXED_LAYOUT)
    if any(burn.fires for burn in burns):
        found.add(State.BURNING)
    if left is not None and left <= 0:
        found.add(State.EXHAUSTED)
    return worst(found)


def _burn(alert: BurnAlert, evidence: Evidence, terms: Terms) -> Burn:
    long, short = (_window(length, evidence, terms) for length in (alert.pair.long_s, alert.pair.short_s))
    flow = evidence.windows.get(alert.pair.long_s)
    above = [one.bad_ratio is not None and one.bad_ratio > float(alert.ratio) for one in (long, short)]
    enough_bad = flow is not None and flow.bad_in(alert.pair.long_s) >= terms.min_bad_events
    return Burn(
        alert_name(alert.pair), alert.pair.severity, float(alert.factor), long, short, fires=all(above) and enough_bad
    )


def _window(length_s: int, evidence: Evidence, terms: Terms) -> BurnWindow:
    flow = evidence.windows.get(length_s)
    if flow is None:
        return BurnWindow(length_s, None, None, None)
    events = flow.events_per_s * length_s
    if evidence.period_events is not None and length_s > min(terms.windows):
        events = min(events, evidence.period_events)  # an average over a window that is only partly recorded yet
    ratio = flow.bad_ratio
    return BurnWindow(length_s, ratio, None if ratio is None else burn_rate(ratio, terms.target), events)


def _some(events: float | None) -> TypeGuard[float]:
    """At least one whole event: rates over samples can tell of a small part of one."""
    return events is not None and events >= 1


def _forecast(evidence: Evidence, terms: Terms, left: float | None) -> Forecast | None:
    """From the long window of the fastest pair: short enough to be about now, long enough to hold events."""
    window_s = min(alert.pair.long_s for alert in terms.alerts)
    window = _window(window_s, evidence, terms)
    if left is None or window.bad_ratio is None or not _some(window.events):
        return None
    low, high = wilson(window.bad_ratio * window.events, window.events)
    after, earliest, latest = (
        exhausted_after_s(bad, terms.target, terms.period_s, left) for bad in (window.bad_ratio, high, low)
    )
    return Forecast(window_s, after, earliest, latest)
