"""Cliffs: places on an axis where latency jumps by more than its trend and its noise explain.

Two methods look at ln(latency) along the axis (on a log scale where it spans far: a power law is a straight line then):

* **change point**: the trend (a line, or a parabola where that fits better) of up to `REACH` points to each side, with
  a step between two of them. The step's t value, allowed for the many places looked at (Bonferroni), decides.
* **second derivative**: by local parabolas, right for uneven spacing. A step bends up before it and down behind it; the
  difference of the two over its own standard error decides likewise.

A bend without a step (latency begins to grow faster) is a knee, not a cliff.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cliffwatch.surface.series import Array, Series, floored_error

LEAST_POINTS = 6
LEAST_SIDE = 2  # points on each side of a step: one alone may be an outlier
REACH = 6
ALARM = 0.005  # false cliffs a clean series, at most
LEAST_JUMP = 0.2  # beyond the trend: a smaller one is no cliff, however sure
CONFIDENCE = 0.95
SMOOTH_FROM = 16  # points from which second derivatives are taken over five of them in place of three
_TO_DEVIATION = 1.4826  # from the median of absolute values to a standard deviation, of normal values
CHANGE_POINT, SECOND_DERIVATIVE = "change point", "second derivative"


@dataclass(frozen=True, slots=True)
class Cliff:
    """One cliff, between two neighbouring points of the axis.

    Attributes:
        after, before: axis values that it lies between: the last one below it, the first one above it.
        low, high: the 95 % interval of its place, axis values again; wider where places beside it fit nearly as well.
        from_s, to_s: the statistic at `after` and `before`.
        n_after, n_before: values behind them.
        jump: to_s / from_s - 1.
        beyond: how much of it the trend does not explain; beyond_low and beyond_high are its 95 % interval.
        p: how often noise alone would show such a step somewhere in the series.
        methods: those that found it; the change point always did.
    """

    after: float
    before: float
    low: float
    high: float
    from_s: float
    to_s: float
    n_after: int
    n_before: int
    jump: float
    beyond: float
    beyond_low: float
    beyond_high: float
    p: float
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a series says: its cliffs in order of the axis, or why there is too little data to say."""

    cliffs: tuple[Cliff, ...]
    points: int
    n: int
    too_few: str | None = None


def find_cliffs(series: Series, alarm: float = ALARM, least_jump: float = LEAST_JUMP) -> Found:
    """The cliffs of a series.

    Args:
        series: points along the axis.
        alarm: at most so many false cliffs a series without any.
        least_jump: a step beyond the trend that is smaller is not reported (0.2: 20 %).
    """
    points, n = len(series.x), int(series.n.sum())
    if points < LEAST_POINTS:
        return Found((), points, n, f"{points} points on the axis; at least {LEAST_POINTS} are needed")
    by_curvature = set(_by_curvature(series, alarm))
    cliffs = [
        _described(series, step, by_curvature)
        for step in _steps(series, 0, points, alarm)
        if math.expm1(step.size) >= least_jump
    ]
    return Found(tuple(sorted(cliffs, key=lambda cliff: cliff.after)), points, n)


@dataclass(frozen=True, slots=True)
class _Step:
    """A step between the points `at` and `at + 1`: `size` in ln, its standard error, p over all places."""

    at: int
    size: float
    error: float
    spare: float
    p: float
    low: int  # gaps that fit nearly as well: the first and the last
    high: int


def _steps(series: Series, start: int, end: int, alarm: float) -> Iterator[_Step]:
    """The surest step of a stretch, then those of the stretches to both sides of it."""
    if end - start < LEAST_POINTS:
        return
    best = _surest(series, start, end)
    if best is None or best.p > alarm:
        return
    yield best
    yield from _steps(series, start, best.at + 1, alarm)
    yield from _steps(series, best.at + 1, end, alarm)


def _surest(series: Series, start: int, end: int) -> _Step | None:
    tried = [
        _fit_step(series, max(start, at + 1 - REACH), min(end, at + 1 + REACH), at)
        for at in range(start + LEAST_SIDE - 1, end - LEAST_SIDE)
    ]
    up = [(step, t) for step in tried if step is not None and (t := step[1] / step[2]) > 0]
    if not up:
        return None
    best, t = max(up, key=lambda pair: pair[1])
    at, size, error, spare = best
    p = min(1.0, (len(series.x) - 1) * float(stats.t.sf(t, spare)))  # a gap of the whole series each
    near = [step[0] for step, other in up if t * t - other * other <= stats.chi2.ppf(CONFIDENCE, 1)]
    low = high = at
    while low - 1 in near:
        low -= 1
    while high + 1 in near:
        high += 1
    return _Step(at, size, error, spare, p, low, high)


def _fit_step(series: Series, start: int, end: int, at: int) -> tuple[int, float, float, float] | None:
    """(at, size, standard error, degrees of freedom) of a step after point `at`, on the trend of points start to end.

    Noise is that of the points' values; where the trend fits worse than these explain, or no point has two values, the
    misfit counts as noise (a Birge ratio), with the few degrees of freedom that it is known by.
    """
    window = series.part(start, end)
    place, level, error = window.place, window.level, floored_error(window.error)
    step = (np.arange(start, end) > at).astype(np.float64)
    centred = (place - place.mean()) / max(float(np.ptp(place)), 1e-12)
    fits = []
    for degree in (1, 2):
        columns = [centred**power for power in range(degree + 1)] + [step]
        if len(columns) < len(level):
            fits.append(_weighted(np.stack(columns, axis=1), level, error))
    if not fits:
        return None
    # A parabola costs a parameter: it must fit better by more than noise would let it (BIC).
    size, spread, misfit, spare = min(fits, key=lambda fit: fit[2] + (len(level) - fit[3]) * math.log(len(level)))
    ratio = misfit / spare if spare else 0.0
    if series.spare and ratio <= 1:
        return at, size, spread, spare + series.spare
    return (at, size, spread * math.sqrt(max(ratio, 1e-12)), spare) if spare else None


def _weighted(design: Array, level: Array, error: Array) -> tuple[float, float, float, int]:
    """(last coefficient, its error, chi-square of the misfit, degrees of freedom) of weighted least squares."""
    scaled = design / error[:, None]
    inverse = np.linalg.pinv(scaled.T @ scaled)
    found = inverse @ scaled.T @ (level / error)
    misfit = float((((level - design @ found) / error) ** 2).sum())
    return float(found[-1]), math.sqrt(max(float(inverse[-1, -1]), 1e-24)), misfit, len(level) - design.shape[1]


def _by_curvature(series: Series, alarm: float) -> Iterator[int]:
    """Gaps (the point before each) at which the second derivative goes from up to down by more than noise."""
    reach = 2 if len(series.x) >= SMOOTH_FROM else 1
    place, level, error = series.place, series.level, floored_error(series.error)
    count = len(place)
    weights = np.zeros((count, count))
    for point in range(reach, count - reach):
        window = slice(point - reach, point + reach + 1)
        powers = np.vander(place[window] - place[point], 3, increasing=True)
        weights[point, window] = 2 * np.linalg.pinv(powers)[2]
    places = range(reach, count - reach - 1)
    contrasts = np.stack([weights[at] - weights[at + 1] for at in places])
    scores = contrasts @ level / np.sqrt(contrasts**2 @ error**2)
    spare = series.spare
    if not spare:  # most places have no step: how their scores scatter is the noise
        scores = scores / max(_TO_DEVIATION * float(np.median(np.abs(scores))), 1e-12)
        spare = len(scores)
    for at, score in zip(places, scores.tolist(), strict=True):
        bends = weights[at] @ level > 0 > weights[at + 1] @ level
        if bends and count * float(stats.t.sf(score, spare)) <= alarm:
            yield at


def _described(series: Series, step: _Step, by_curvature: set[int]) -> Cliff:
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, step.spare)) * step.error
    x, y, n = series.x.tolist(), series.y.tolist(), series.n.tolist()
    agree = any(step.low <= at <= step.high for at in by_curvature)
    return Cliff(
        after=x[step.at],
        before=x[step.at + 1],
        low=x[step.low],
        high=x[step.high + 1],
        from_s=y[step.at],
        to_s=y[step.at + 1],
        n_after=n[step.at],
        n_before=n[step.at + 1],
        jump=y[step.at + 1] / y[step.at] - 1,
        beyond=math.expm1(step.size),
        beyond_low=math.expm1(step.size - half),
        beyond_high=math.expm1(min(step.size + half, 700.0)),
        p=step.p,
        methods=(CHANGE_POINT, SECOND_DERIVATIVE) if agree else (CHANGE_POINT,),
    )
