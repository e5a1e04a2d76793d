"""The knees of a run for a picture: its curves along an axis with their points and the straight pieces through them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain

from scipy import stats

from cliffwatch.surface.along import curves
from cliffwatch.surface.bins import AUTO
from cliffwatch.surface.drift import Shift, shift
from cliffwatch.surface.grid import Points, Source
from cliffwatch.surface.knee import CONFIDENCE, Knee, find_knee
from cliffwatch.surface.series import Array, logs_of, pooled_spread

# Axes in the order they are tried, and what there is a curve for each value of.
AXES = {"batch": "input_tokens", "concurrency": "phase", "rate": "phase", "input_tokens": "batch"}


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point: the geometric mean of its values, with its 95 % interval by their scatter (None where unknown)."""

    x: float
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class KneeCurve:
    """One curve, for the value `of` of the other dimension."""

    of: str
    points: tuple[CurvePoint, ...]
    knee: Knee

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """Where the straight pieces begin, meet and end; none where there are too few points for pieces."""
        if not self.knee.levels:
            return ()
        places = (self.points[0].x, *(one.at for one in self.knee.breaks), self.points[-1].x)
        return tuple(zip(places, self.knee.levels, strict=True))


@dataclass(frozen=True, slots=True)
class Knees:
    """The curves of a metric along `axis`, one for each value of `by`."""

    metric: str
    axis: str
    by: str
    curves: tuple[KneeCurve, ...]

    @property
    def surest(self) -> KneeCurve | None:
        """The curve whose first knee has the narrowest interval; without a knee the first that has enough points."""
        sharp = [one for one in self.curves if one.knee.breaks]
        if sharp:
            return min(sharp, key=lambda one: one.knee.breaks[0].high / max(one.knee.breaks[0].low, 1e-9))
        return next((one for one in self.curves if one.corners), None)


def knees(source: Source, metric: str, axis: str = AUTO) -> Knees:
    """The curves along an axis; `auto` is the first of `AXES` that has enough points on some curve.

    Raises:
        InputError: an unknown name, or an axis that is none of `AXES` and has no curves for it.
        RunError: the run cannot be read.
    """
    if axis != AUTO:
        return _along(source, metric, axis)
    found = (_along(source, metric, one) for one in AXES)
    first = next(found)
    return next((one for one in chain([first], found) if any(not curve.knee.too_few for curve in one.curves)), first)


def moves(before: Knees, after: Knees) -> tuple[tuple[str, Shift], ...]:
    """How far the first knee moved between two runs, for each curve that has one in both."""
    firsts, thens = (
        {one.of: one.knee.breaks[0] for one in of_run.curves if one.knee.breaks} for of_run in (before, after)
    )
    both = [(of, first, thens[of]) for of, first in firsts.items() if of in thens]
    return tuple((of, shift(first, then)) for of, first, then in both if first.low > 0 and then.low > 0)


def _along(source: Source, metric: str, axis: str) -> Knees:
    by = AXES.get(axis, "phase")
    found = curves(source, metric, axis, by)
    return Knees(metric, axis, by, tuple(_curve(of, points) for of, points in found.items()))


def _curve(of: str, points: Points) -> KneeCurve:
    kept = logs_of(points)
    spread, spare = pooled_spread([values for _, values in kept])
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, spare)) * spread if spare else None
    return KneeCurve(of, tuple(_point(x, values, reach) for x, values in kept), find_knee(points))


def _point(x: float, logs: Array, reach: float | None) -> CurvePoint:
    value, n = math.exp(float(logs.mean())), logs.size
    factor = None if reach is None else math.exp(reach / math.sqrt(n))
    return CurvePoint(x, value, factor and value / factor, factor and value * factor, n)
