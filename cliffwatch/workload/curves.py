"""Rates that change with time, as their integral and its inverse.

`expected(t)` is the number of requests due by t, the integral of the rate; `when(n)` is the time by which n are due,
its inverse. Arrivals of a unit process put through `when` have the asked rate at every moment, exactly (time
rescaling: Daley and Vere-Jones 2003, section 7.4): no steps, no thinning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.arrival_parts import BurstArrivals, CurveArrivals, DiurnalArrivals, RampArrivals

Floats = NDArray[np.float64]
_NEWTON_ROUNDS = 60  # each at least halves the bracket, so that the last bit is reached


class Curve(Protocol):
    """A rate over time. Arguments and results are arrays; times in seconds."""

    def expected(self, t_s: Floats) -> Floats:
        """Requests due by each time."""

    def when(self, due: Floats) -> Floats:
        """The time by which so many are due; infinite where they never are."""


@dataclass(frozen=True)
class Piecewise:
    """Rates from `low` to `high` over parts of `seconds` each, in straight lines or geometrically.

    After the last part the curve starts over, or stays at `tail`.
    """

    seconds: Floats
    low: Floats
    high: Floats
    geometric: bool = False
    tail: float | None = None

    @cached_property
    def _starts(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.seconds)])

    @cached_property
    def _due(self) -> Floats:
        """Requests due at each start, and at the end."""
        means = (self.low + self.high) / 2
        if self.geometric:
            steep = self.low != self.high
            logs = np.log(self.high[steep] / self.low[steep])
            means[steep] = (self.high[steep] - self.low[steep]) / logs
        return np.concatenate([[0.0], np.cumsum(means * self.seconds)])

    def expected(self, t_s: Floats) -> Floats:
        whole, t_s = self._cycles(t_s, self._starts[-1])
        part = np.minimum(np.searchsorted(self._starts, t_s, side="right") - 1, len(self.seconds) - 1)
        after = np.maximum(0.0, t_s - self._starts[-1])
        within = np.minimum(t_s, self._starts[-1]) - self._starts[part]
        low, high, seconds = self.low[part], self.high[part], self.seconds[part]
        if self.geometric:
            growth = np.log(high / low) / seconds
            flat = growth == 0
            due = np.where(flat, low * within, low * np.expm1(growth * within) / np.where(flat, 1, growth))
        else:
            due = low * within + (high - low) / seconds * within**2 / 2
        total: Floats = whole * self._due[-1] + self._due[part] + due + after * (self.tail or 0.0)
        return total

    def when(self, due: Floats) -> Floats:
        whole, due = self._cycles(due, self._due[-1])
        part = np.minimum(np.searchsorted(self._due, due, side="right") - 1, len(self.seconds) - 1)
        left = np.minimum(due, self._due[-1]) - self._due[part]
        low, high, seconds = self.low[part], self.high[part], self.seconds[part]
        if self.geometric:
            growth = np.log(high / low) / seconds
            flat = growth == 0
            within = np.where(flat, left / low, np.log1p(growth * left / low) / np.where(flat, 1, growth))
        else:
            root = low + np.sqrt(np.maximum(0.0, low**2 + 2 * (high - low) / seconds * left))
            within = np.where(root > 0, 2 * left / np.where(root > 0, root, 1), 0.0)
        times: Floats = whole * self._starts[-1] + self._starts[part] + np.minimum(within, seconds)
        over = due >= self._due[-1]
        if self.tail is not None and over.any():
            rest = due[over] - self._due[-1]
            times[over] = self._starts[-1] + rest / self.tail if self.tail else np.inf
        return times

    def _cycles(self, amount: Floats, one: float) -> tuple[Floats, Floats]:
        """Whole rounds before each amount, and what is left of it, where the curve starts over."""
        if self.tail is not None:
            return np.zeros_like(amount), amount
        whole = np.floor(amount / one)
        return whole, np.clip(amount - whole * one, 0.0, one)


@dataclass(frozen=True)
class Sinusoid:
    """mean (1 + depth cos(2 pi (t - peak) / period)), depth from 0 to 1."""

    mean: float
    depth: float
    period: float
    peak: float

    def expected(self, t_s: Floats) -> Floats:
        turn = 2 * np.pi / self.period
        waves = np.sin(turn * (t_s - self.peak)) + np.sin(turn * self.peak)
        due: Floats = self.mean * (t_s + self.depth / turn * waves)
        return due

    def when(self, due: Floats) -> Floats:
        """Newton's rule within a bracket that each round narrows (as for Kepler's equation, which this is)."""
        slack = self.depth * self.period / np.pi
        low, high = np.maximum(0.0, due / self.mean - slack), due / self.mean + slack
        times: Floats = due / self.mean
        done = np.zeros(len(due), dtype=bool)
        for _ in range(_NEWTON_ROUNDS):
            over = self.expected(times) - due
            low, high = np.where(over <= 0, times, low), np.where(over >= 0, times, high)
            rate = self.mean * (1 + self.depth * np.cos(2 * np.pi / self.period * (times - self.peak)))
            with np.errstate(divide="ignore", invalid="ignore"):
                better = times - over / rate
            better = np.where((better >= low) & (better <= high), better, (low + high) / 2)
            settled = np.abs(better - times) <= 1e-11 + 1e-15 * times
            times = np.where(done, times, better)  # each by its own rounds, whatever else is in the block
            done |= settled
            if done.all():
                break
        return times


def _steps(seconds: Floats, rates: Floats, tail: float | None) -> Curve:
    return Piecewise(seconds, rates, rates, tail=tail)


def ramp(spec: RampArrivals) -> Curve:
    if spec.stages is not None:
        return _steps(np.full(spec.stages, spec.over / spec.stages), np.asarray(spec.stage_rates), spec.end_rate)
    low, high = np.array([spec.start_rate or 0.0]), np.array([spec.end_rate])
    return Piecewise(np.array([spec.over]), low, high, geometric=spec.shape == "geometric", tail=spec.end_rate)


def diurnal(spec: DiurnalArrivals) -> Curve:
    mean = (spec.low + spec.high) / 2
    peak = spec.period / 2 if spec.peak is None else spec.peak
    return Sinusoid(mean=mean, depth=(spec.high - spec.low) / 2 / mean, period=spec.period, peak=peak)


def bursts(spec: BurstArrivals) -> Curve:
    return _steps(np.array([spec.on, spec.off]), np.array([spec.on_rate, spec.off_rate]), None)


def curve(spec: CurveArrivals) -> Curve:
    points = [(point.at, point.rate) for point in spec.points]
    if points[0][0] > 0:
        points.insert(0, (0.0, points[0][1]))
    tail = points[-1][1]
    if spec.repeat is not None:
        points.append((spec.repeat, tail if spec.interpolate == "steps" else points[0][1]))
    elif len(points) == 1:
        points.append((1.0, tail))
    seconds = np.array([after[0] - before[0] for before, after in pairwise(points)])
    rates = np.array([rate for _, rate in points])
    ends = rates[:-1] if spec.interpolate == "steps" else rates[1:]
    return Piecewise(seconds, rates[:-1], ends, tail=None if spec.repeat is not None else tail)


CURVES: dict[str, Callable[[Any], Curve]] = {"ramp": ramp, "diurnal": diurnal, "bursts": bursts, "curve": curve}
