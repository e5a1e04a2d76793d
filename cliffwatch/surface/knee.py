"""Knees: where latency or throughput along an axis begins to grow in another way.

The curve is read as pieces of straight lines that meet: no break, one, or two (start, linear, saturated). Values
scatter by a factor, so misfits are relative. A break is one when the better fit is beyond what noise gives to curves
without it, and when it changes the slope by half; intervals come from a bootstrap of the values at each point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from cliffwatch.surface.series import Array, logs_of, pooled_spread, spans_far

LEAST_POINTS = 5
PLACES = 48  # that a break is looked for at, between the second and the last but one point
RESAMPLES = 200
CONFIDENCE = 0.95
ALARM = 0.01  # curves without a break that are given one, at most
DRAWS = 500
MANY = 2_000  # values of a point whose mean is as good as normal
TOLERANCE = 0.02  # a misfit that small is not worth a break, however little the values scatter
LEAST_BEND = 0.5  # a slope is another one when it differs by that share of the steeper of the two


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the slope changes; `low` and `high` are its 95 % interval."""

    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Knee:
    """A curve as pieces of straight lines.

    Attributes:
        breaks: none, one or two, in order.
        slopes: of each piece, y units an axis unit; one more than breaks.
        levels: y at the least axis value, at each break and at the greatest axis value.
        points, n: of the axis, and values behind them.
        misfit: root mean square of the relative misfits.
        too_few: why nothing can be said; None else.
    """

    breaks: tuple[Break, ...]
    slopes: tuple[float, ...]
    levels: tuple[float, ...]
    points: int
    n: int
    misfit: float | None
    too_few: str | None = None

    @property
    def phases(self) -> tuple[str, ...]:
        """What each piece is, by its slope against the steepest: `flat` or `growing`, or `falling`."""
        steepest = max((abs(slope) for slope in self.slopes), default=0.0)
        return tuple(_phase(slope, steepest) for slope in self.slopes)


def _phase(slope: float, steepest: float) -> str:
    if abs(slope) < 0.15 * steepest:
        return "flat"
    return "growing" if slope > 0 else "falling"


def find_knee(points: Sequence[tuple[float, Array]], seed: int = 0) -> Knee:
    """The pieces of the curve of means over (axis value, values there). Values that are not positive are left out."""
    kept = logs_of(points)
    logs = [values for _, values in kept]
    n = sum(values.size for values in logs)
    if len(kept) < LEAST_POINTS:
        reason = f"{len(kept)} points on the axis; at least {LEAST_POINTS} are needed"
        return Knee((), (), (), len(kept), n, None, reason)
    x = np.array([value for value, _ in kept], dtype=np.float64)
    y = np.array([math.exp(float(values.mean())) for values in logs])
    spread, spare = pooled_spread(logs)
    usual = spread**2 * float(np.mean([1 / values.size for values in logs])) if spare else 0.0
    fits = _Fits(x, y, math.sqrt(usual + TOLERANCE**2), spare)
    generator = np.random.default_rng(seed)
    chosen = fits.choose(y, generator)
    breaks = _intervals(fits, logs, y, chosen, generator) if chosen else ()
    levels, slopes, misfit = fits.describe(y, chosen)
    return Knee(breaks, slopes, levels, len(x), n, misfit)


class _Fits:
    """Every way of laying up to two breaks, as orthonormal bases: a curve's misfit with each is one product away."""

    def __init__(self, x: Array, y: Array, noise: float, spare: int) -> None:
        self.x = x
        self._noise, self._spare = noise, spare
        spread = np.geomspace if spans_far(x) else np.linspace
        self.places: Array = spread(x[1], x[-2], PLACES)
        self._weight = 1 / y
        most = 2 if len(x) >= LEAST_POINTS + 2 else 1
        self.layouts: dict[int, list[tuple[float, ...]]] = {
            count: [each for each in combinations(self.places.tolist(), count) if self._apart(each)]
            for count in range(most + 1)
        }
        self._bases = {
            count: np.stack([np.linalg.qr(self._design(each) * self._weight[:, None])[0] for each in layouts])
            for count, layouts in self.layouts.items()
            if layouts
        }

    def _apart(self, breaks: tuple[float, ...]) -> bool:
        """At least one point of the axis lies between two breaks, and one beyond each end."""
        edges = [-math.inf, *breaks, math.inf]
        return all(int(((self.x > low) & (self.x < high)).sum()) >= 1 for low, high in pairwise(edges))

    def _design(self, breaks: tuple[float, ...]) -> Array:
        hinges = [np.maximum(self.x - each, 0) for each in breaks]
        design: Array = np.stack([np.ones_like(self.x), self.x, *hinges], axis=1)
        return design

    def misfits(self, curves: Array, count: int) -> Array:
        """Sums of squared relative misfits: [layout, curve] for curves[point, curve]."""
        scaled = curves * self._weight[:, None]
        within = np.einsum("lpk,pc->lkc", self._bases[count], scaled)
        left: Array = np.maximum((scaled**2).sum(axis=0)[None, :] - (within**2).sum(axis=1), 0)
        return left

    def choose(self, y: Array, generator: np.random.Generator) -> tuple[float, ...]:
        """The fewest breaks that more breaks do not beat by more than noise would let them."""
        for count in range(max(self._bases)):
            held = self._best(y, count)
            for more in range(count + 1, max(self._bases) + 1):
                if self._beats(y, held, more, generator) and self._bends(y, self._best(y, more)):
                    break
            else:
                return held
        return self._best(y, max(self._bases))

    def _best(self, y: Array, count: int) -> tuple[float, ...]:
        return self.layouts[count][int(self.misfits(y[:, None], count)[:, 0].argmin())]

    def _beats(self, y: Array, held: tuple[float, ...], more: int, generator: np.random.Generator) -> bool:
        """Whether `more` breaks fit better than the ones held by more than they would on curves that have no others.

        A break's place is sought, so no table of F holds: the gain is compared with that of drawn curves. The noise
        is that of the misfit and, with as much weight as it is known by, that of the values.
        """
        fitted, noise, spare = _curve(self, y, held), self._noise, self._spare
        drawn = fitted[:, None] * np.exp(noise * generator.standard_normal((len(y), DRAWS)))
        both = np.concatenate([y[:, None], drawn], axis=1)
        fewer, better = (self.misfits(both, count).min(axis=0) for count in (len(held), more))
        known = noise**2 * np.concatenate([[spare], generator.chisquare(spare, DRAWS) if spare else np.zeros(DRAWS)])
        gain = (fewer - better) / np.maximum(better + known, 1e-12)
        return bool(gain[0] > np.quantile(gain[1:], 1 - ALARM))

    def _bends(self, y: Array, breaks: tuple[float, ...]) -> bool:
        """Whether every break changes the slope by enough to be one."""
        _, slopes, _ = self.describe(y, breaks)
        pairs = pairwise(slopes)
        return all(abs(after - before) >= LEAST_BEND * max(abs(before), abs(after)) for before, after in pairs)

    def next_place(self, at: float, by: int) -> float:
        """The place beside one, or that one at the end: between two places nothing was tried."""
        found = int(np.abs(self.places - at).argmin())
        return float(self.places[min(max(found + by, 0), PLACES - 1)])

    def describe(self, y: Array, breaks: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        """(levels, slopes, root mean square of the relative misfits) with these breaks."""
        design = self._design(breaks)
        found, *_ = np.linalg.lstsq(design * self._weight[:, None], y * self._weight, rcond=None)
        slopes = np.cumsum(found[1:])
        ends = np.array([self.x[0], *breaks, self.x[-1]])
        hinges = [np.maximum(ends - each, 0) for each in breaks]
        levels = np.stack([np.ones_like(ends), ends, *hinges], axis=1) @ found
        misfit = math.sqrt(float((((y - design @ found) * self._weight) ** 2).mean()))
        return tuple(levels.tolist()), tuple(slopes.tolist()), misfit


def _intervals(
    fits: _Fits,
    logs: Sequence[Array],
    y: Array,
    breaks: tuple[float, ...],
    generator: np.random.Generator,
) -> tuple[Break, ...]:
    """Percentile intervals of the breaks, their number held.

    The values of each point are drawn anew, and what the pieces do not explain is added with a random sign (a wild
    bootstrap): points with one value have no scatter of their own, and straight pieces are seldom the whole truth.
    """
    drawn = np.stack([_means(each, generator) for each in logs])
    scatter = drawn - np.log(y)[:, None]
    scale = [math.sqrt(each.size / (each.size - 1)) if each.size > 1 else 1.0 for each in logs]
    fitted = _curve(fits, y, breaks)
    signs: np.ndarray[Any, Any] = generator.choice([-1.0, 1.0], (len(y), RESAMPLES))
    freedom = math.sqrt(len(y) / max(1, len(y) - 2 - 2 * len(breaks)))
    misfit = np.abs(np.log(y / fitted))[:, None] * signs * freedom
    curves = np.exp(np.log(fitted)[:, None] + scatter * np.array(scale)[:, None] + misfit)
    best = fits.misfits(curves, len(breaks)).argmin(axis=0)
    layouts = np.array(fits.layouts[len(breaks)])[best]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(layouts, [tail, 1 - tail], axis=0)
    return tuple(
        Break(at, fits.next_place(min(at, float(lower)), -1), fits.next_place(max(at, float(upper)), 1))
        for at, lower, upper in zip(breaks, low, high, strict=True)
    )


def _means(values: Array, generator: np.random.Generator) -> Array:
    """Means of values drawn anew. Those of many are normal, and drawing them all would take memory for each draw."""
    if values.size > MANY:
        return generator.normal(values.mean(), values.std() / math.sqrt(values.size), RESAMPLES)
    means: Array = generator.choice(values, (RESAMPLES, values.size)).mean(axis=1)
    return means


def _curve(fits: _Fits, y: Array, breaks: tuple[float, ...]) -> Array:
    levels, _, _ = fits.describe(y, breaks)
    curve: Array = np.interp(fits.x, [fits.x[0], *breaks, fits.x[-1]], levels)
    return np.maximum(curve, 1e-12)
