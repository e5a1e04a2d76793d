"""An objective's rates over a span of the past, at every instant at which Prometheus would have evaluated its rules.

Prometheus itself computes the rates over raw series (counter resets, instances, mixed bucket layouts), by the compiled
expressions. Longer windows are means of the 5-minute rates, as the compiled records have them: of the samples in
(t - window, t], those that are absent left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cliffwatch.slo.live.asks import Series
from cliffwatch.slo.prometheus.counts import LOOK_S, longest_raw_s
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.record import BASE_S
from cliffwatch.slo.watch import Calendar

Floats = NDArray[np.float64]
Indexes = NDArray[np.int64]
Flags = NDArray[np.bool_]
What = Literal["events", "bad"]
Rates = dict[tuple[What, int], Floats]


@dataclass(frozen=True, slots=True)
class Grid:
    """Instants of evaluation in Unix seconds: `start_s`, then every `step_s`, `size` in all; `lead` of them come before
    the replayed span, for what windows and the budget's period reach back to."""

    start_s: float
    step_s: float
    size: int
    lead: int

    @classmethod
    def over(cls, start_s: float, end_s: float, step_s: float, reach_s: float) -> Grid:
        """Multiples of the step in [start, end], and before them as many as `reach_s` holds."""
        first, last = math.ceil(start_s / step_s), math.floor(end_s / step_s)
        lead = math.ceil(reach_s / step_s)
        return cls((first - lead) * step_s, step_s, last - first + 1 + lead, lead)

    @property
    def replayed(self) -> int:
        """How many instants are replayed."""
        return self.size - self.lead

    def at(self, index: int) -> float:
        """The time of a replayed instant."""
        return self.start_s + (self.lead + index) * self.step_s

    @property
    def end_s(self) -> float:
        return self.at(self.replayed - 1)

    def begins(self, window_s: float) -> Indexes:
        """The first instant of each instant's window, which is open on its left; negative before the grid."""
        return np.arange(self.size) - math.ceil(window_s / self.step_s) + 1

    def calendar_begins(self, calendar: Calendar) -> Indexes:
        """The first instant of each instant's period of the calendar; negative before the grid."""
        times = np.round(self.start_s + np.arange(self.size) * self.step_s).astype("datetime64[s]")
        starts_s = period_starts(times, calendar).astype("datetime64[s]").astype(np.int64)
        first: Indexes = np.ceil((starts_s - self.start_s) / self.step_s).astype(np.int64)
        return first

    def offset(self, window_s: int) -> int:
        """The first instant at which a rate is needed: only the base reaches back."""
        return 0 if window_s == BASE_S else self.lead

    def place(self, into: Floats, series: Series, offset: int) -> None:
        """Write a series' points into an array that begins with the grid's instant `offset`."""
        if not series.points:
            return
        points = np.asarray(series.points)
        index = np.rint((points[:, 0] - self.start_s) / self.step_s).astype(np.int64) - offset
        inside = (index >= 0) & (index < len(into))
        into[index[inside]] = points[inside, 1]


@dataclass(frozen=True, slots=True)
class History:
    """One group's rates. Arrays hold NaN where Prometheus has no sample.

    `rates`: events or bad events a second by window; of the base window over the whole grid, else the replayed part.
    Windows over `raw_up_to_s` seconds are means of the base's.
    """

    grid: Grid
    rates: Mapping[tuple[What, int], Floats]
    raw_up_to_s: int = BASE_S

    def rate(self, what: What, window_s: int) -> Floats:
        """Events a second over a window, at each replayed instant."""
        if window_s <= self.raw_up_to_s:
            values = self.rates[what, window_s]
            return values[self.grid.lead :] if window_s == BASE_S else values
        sums, counts = self._sums(what, self.grid.begins(window_s))
        with np.errstate(invalid="ignore"):
            return sums / counts

    def count(self, what: What, begins: Indexes) -> Floats:
        """Events from instant `begins` of the grid up to each: the sum of their 5-minute rates, each standing for one
        step; NaN where there is none."""
        sums, counts = self._sums(what, begins)
        return np.where(counts > 0, sums * self.grid.step_s, np.nan)

    def bad_events(self, window_s: int) -> Floats:
        """Bad events in an alert's long window, as `prometheus.counts` has them; NaN where none can be known."""
        if window_s <= self.raw_up_to_s:
            return self.rate("bad", window_s) * window_s
        counted = self._looked_at(window_s)
        raw_s = longest_raw_s([window for _, window in self.rates], self.raw_up_to_s)
        return counted if raw_s is None else np.fmax(counted, self.rate("bad", raw_s) * raw_s)

    def _looked_at(self, window_s: int) -> Floats:
        """The sum of the 5-minute rates of bad events at every whole `LOOK_S` of a window, times `LOOK_S`."""
        grid = self.grid
        first, last = math.ceil(grid.start_s / LOOK_S), math.floor(grid.end_s / LOOK_S)
        looks = np.arange(first, last + 1)
        seen = np.floor((looks * LOOK_S - grid.start_s) / grid.step_s + 1e-9).astype(np.int64)
        sums, counts = sums_since(self.rates["bad", BASE_S][seen], looks - first + 1 - window_s // LOOK_S)
        counted = np.concatenate(([np.nan], np.where(counts > 0, sums * LOOK_S, np.nan)))  # before the first look
        times_s = grid.start_s + np.arange(grid.lead, grid.size) * grid.step_s
        return counted[np.floor(times_s / LOOK_S + 1e-9).astype(np.int64) - first + 1]

    def ratio(self, window_s: int) -> Floats:
        """Share of bad events in a window; NaN without any event."""
        return share(self.rate("bad", window_s), self.rate("events", window_s))

    def ratio_since(self, begins: Indexes) -> Floats:
        """Share of bad events from instant `begins` up to each; NaN without any event."""
        return share(self.count("bad", begins), self.count("events", begins))

    @property
    def first_known(self) -> int | None:
        """The grid's first instant at which anything is known; None: at none."""
        known = np.flatnonzero(~np.isnan(self.rates["events", BASE_S]))
        return int(known[0]) if len(known) else None

    def _sums(self, what: What, begins: Indexes) -> tuple[Floats, Indexes]:
        sums, counts = sums_since(self.rates[what, BASE_S], begins)
        return sums[self.grid.lead :], counts[self.grid.lead :]


def period_starts(times: NDArray[np.datetime64], calendar: Calendar) -> NDArray[np.datetime64]:
    """When each instant's period began, in UTC; 5 January 1970 was a Monday."""
    if calendar is Calendar.WEEK:
        starts = times.astype("datetime64[D]")
        past = ((starts.astype(np.int64) + 3) % 7).astype("timedelta64[D]")
    else:
        starts = times.astype("datetime64[M]")
        past = (starts.astype(np.int64) % (1 if calendar is Calendar.MONTH else 3)).astype("timedelta64[M]")
    begun: NDArray[np.datetime64] = starts - past
    return begun


def share(bad: Floats, events: Floats) -> Floats:
    """bad / events where there are events; else NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(events > 0, bad / events, np.nan)


def sums_since(values: Floats, begins: Indexes) -> tuple[Floats, Indexes]:
    """For each instant the sum and the number of known values from instant `begins` to itself, both included.

    A window without any non-zero value sums to exactly 0: differences of running sums would leave a rest there, and
    what is no event at all would have a ratio.
    """
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    ends, first = np.arange(1, len(values) + 1), np.maximum(begins, 0)

    def windowed(each: NDArray[Any]) -> NDArray[Any]:
        running = np.concatenate((np.zeros(1, each.dtype), np.cumsum(each)))
        difference: NDArray[Any] = running[ends] - running[first]
        return difference

    sums = np.where(windowed((filled != 0).astype(np.int64)) > 0, windowed(filled), 0.0)
    return sums, windowed(known.astype(np.int64))


def questions(events: Events, windows: set[int]) -> dict[tuple[What, int], str]:
    """The PromQL of every rate that is computed from raw series, by what it counts and its window, seconds."""
    raw = sorted(window for window in windows | {BASE_S} if window <= max(BASE_S, events.raw_up_to_s))
    rates = {"events": events.rate, "bad": events.bad_rate}
    return {(what, window): rates[what](window_text(window)) for window in raw for what in ("events", "bad")}


def pieces(grid: Grid, window_s: int, points: int) -> Iterator[tuple[float, float]]:
    """Start and end of the range queries that cover what is needed of a window, at most `points` instants each."""
    for first in range(grid.offset(window_s), grid.size, points):
        last = min(first + points, grid.size) - 1
        yield grid.start_s + first * grid.step_s, grid.start_s + last * grid.step_s
