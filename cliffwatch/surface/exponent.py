"""How latency scales along an axis: the exponent p of a power law, latency = c n^p, and whether it is one at all.

A power law is a straight line of ln(latency) over ln(axis): weighted least squares, with noise as cliffs have it (that
of the values at each point; where the line fits worse, its misfit). A parabola that fits better says how the exponent
itself grows along the axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from cliffwatch.surface.cells import Array
from cliffwatch.surface.series import Series, floored_error

LEAST_POINTS = 5  # for a line, a bend and two degrees of freedom to judge it by
CONFIDENCE = 0.95
SURE = 0.01  # how often noise alone may seem to bend a straight line
LEAST_CHANGE = 0.2  # of the exponent over the axis: a bend that changes it by less leaves a power law one
MOST_MISFIT = 0.15  # of the median point: a line that misses by more is no law


@dataclass(frozen=True, slots=True)
class Slope:
    """An exponent with its 95 % interval."""

    exponent: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a series scales.

    Attributes:
        points, n: of the series, and values behind them.
        whole: the exponent over the whole axis; None where too little is known.
        start, end: that at the first and at the last point, of the parabola; None likewise.
        first, last: the axis values there.
        misfit: how far the median point lies from the power law, as a share; None likewise.
        not_a_law: why it is no power law, in words; None where it is one, or too little is known.
        too_few: why nothing can be said.
    """

    points: int
    n: int
    whole: Slope | None = None
    start: Slope | None = None
    end: Slope | None = None
    first: float | None = None
    last: float | None = None
    misfit: float | None = None
    not_a_law: str | None = None
    too_few: str | None = None


def scaling(series: Series) -> Scaling:
    """The exponent of a series; points at 0 or below have none and are left out."""
    series = series.part(int(np.searchsorted(series.x, 0.0, "right")), len(series.x))
    points, n = len(series.x), int(series.n.sum())
    if points < LEAST_POINTS:
        return Scaling(points, n, too_few=f"{points} points on the axis; at least {LEAST_POINTS} are needed")
    place = np.log(series.x)
    line, bent = _fit(series, place, 1), _fit(series, place, 2)
    start, end = bent.slope_at(place[0]), bent.slope_at(place[-1])
    misfit = math.expm1(float(np.median(np.abs(line.residuals))))
    found = Scaling(points, n, line.slope_at(place[0]), start, end, float(series.x[0]), float(series.x[-1]), misfit)
    reason = _why_not(found, line, bent)
    return found if reason is None else replace(found, not_a_law=reason)


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """Coefficients of ln(latency), lowest first, over ln(axis); their covariance, and what the fit leaves."""

    coefficients: Array
    covariance: Array
    residuals: Array
    misfit: float  # chi-square
    spare: int  # degrees of freedom of the misfit
    freedom: int  # those behind the covariance

    def slope_at(self, place: float) -> Slope:
        powers = np.arange(len(self.coefficients))
        weights = powers * np.asarray(place) ** np.maximum(powers - 1, 0)
        slope = float(weights @ self.coefficients)
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom)) * math.sqrt(weights @ self.covariance @ weights)
        return Slope(slope, slope - half, slope + half)


def _fit(series: Series, place: Array, degree: int) -> _Polynomial:
    error = floored_error(series.error)
    design = np.vander(place, degree + 1, increasing=True)
    scaled = design / error[:, None]
    coefficients, *_ = np.linalg.lstsq(scaled, series.level / error, rcond=None)
    residuals = series.level - design @ coefficients
    misfit, spare = float(((residuals / error) ** 2).sum()), len(place) - degree - 1
    covariance = np.linalg.pinv(scaled.T @ scaled)
    ratio = misfit / spare
    if series.spare and ratio <= 1:
        return _Polynomial(coefficients, covariance, residuals, misfit, spare, spare + series.spare)
    return _Polynomial(coefficients, covariance * ratio, residuals, misfit, spare, spare)


def _why_not(found: Scaling, line: _Polynomial, bent: _Polynomial) -> str | None:
    start, end = found.start, found.end
    if start is None or end is None:
        return None
    gain = (line.misfit - bent.misfit) / max(bent.misfit / bent.spare, 1e-300)
    bends = float(stats.f.sf(gain, 1, bent.spare)) < SURE
    if bends and abs(end.exponent - start.exponent) >= LEAST_CHANGE:
        return f"its exponent goes from {start.exponent:.2f} at {found.first:g} to {end.exponent:.2f} at {found.last:g}"
    if found.misfit is not None and found.misfit > MOST_MISFIT:
        return f"half of the points lie {found.misfit:.0%} and more from it"
    return None
