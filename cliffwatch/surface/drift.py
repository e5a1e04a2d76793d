"""Why a knee moved: x* = x0 (1 - a rho)^(b g), fitted over runs, with a test of the fit.

`rho` is a share from 0 to 1 that takes room away (fragmentation of the cache, or the share of it in use at rest), `g` a
share from 0 to 1 of what makes room matter (such as 1 with CUDA graphs, 0 without; or the share of uncached prompts).
`a` (0 to 1) says how much of rho counts, `b` how strongly the knee follows. In ln it is ln x0 + b g ln(1 - a rho):
without runs that differ in rho g nothing of it is known, and where rho has only one value beside 0, `a` and `b` cannot
be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import optimize, stats

from cliffwatch.surface.series import Array

LEAST_RUNS = 4
CONFIDENCE = 0.95
_MOST_A, _MOST_B = 0.99, 20.0
STARTS = tuple((a, b) for a in (0.1, 0.5, 0.9) for b in (0.3, 1.0, 4.0))


class Place(Protocol):
    """A place on an axis with its 95 % interval, such as a `Break`."""

    @property
    def at(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@dataclass(frozen=True, slots=True)
class KneeOfRun:
    """The knee of one run: its place with its 95 % interval, and the run's rho and g."""

    at: float
    low: float
    high: float
    rho: float
    g: float


@dataclass(frozen=True, slots=True)
class Shift:
    """How far a knee moved between two runs: `ratio` of their places, with its 95 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the data show that it moved at all."""
        return not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True)
class Drift:
    """The model over several runs.

    Attributes:
        x0, a, b: what was fitted; None where the data cannot tell, and `unknown` says why.
        intervals: 95 % intervals of those, by name (profile likelihood approximated by the curvature at the best fit).
        explained: share of the scatter of ln x* that rho and g explain.
        p_effect: how often knees that have nothing to do with rho and g would seem to follow them as well.
        p_fit: how often the model, were it true, would fit as badly (chi-square against the knees' own intervals).
        runs: how many.
    """

    x0: float | None
    a: float | None
    b: float | None
    intervals: dict[str, tuple[float, float]]
    explained: float | None
    p_effect: float | None
    p_fit: float | None
    runs: int
    unknown: str | None = None


def shift(before: Place, after: Place) -> Shift:
    """The move of a knee from one run to another: intervals of both, taken as normal in ln and independent."""
    error = math.hypot(_error(before), _error(after))
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * error
    moved = math.log(after.at / before.at)
    return Shift(math.exp(moved), math.exp(moved - half), math.exp(moved + half))


def fit_drift(knees: Sequence[KneeOfRun]) -> Drift:
    """The model over runs; what cannot be told is None, and why is said."""
    reason = _untold(knees)
    if reason is not None:
        return Drift(None, None, None, {}, None, None, None, len(knees), reason)
    level = np.log([knee.at for knee in knees])
    error = np.array([_error(knee) for knee in knees])
    rho, g = np.array([knee.rho for knee in knees]), np.array([knee.g for knee in knees])

    def misfits(parameters: Array) -> Array:
        log_x0, a, b = parameters
        misfit: Array = (level - log_x0 - b * g * np.log1p(-a * rho)) / error
        return misfit

    bounds = ([-np.inf, 0.0, 0.0], [np.inf, _MOST_A, _MOST_B])
    fits = [optimize.least_squares(misfits, (float(level.max()), a, b), bounds=bounds) for a, b in STARTS]
    best = min(fits, key=lambda fit: float(fit.cost))
    misfit, spare = 2 * float(best.cost), len(knees) - 3
    weight = 1 / error**2
    without = float((weight * (level - np.average(level, weights=weight)) ** 2).sum())
    explained = 1 - misfit / without if without else 0.0
    p_effect = float(stats.f.sf((without - misfit) / 2 / (misfit / spare), 2, spare)) if misfit else 0.0
    p_fit = float(stats.chi2.sf(misfit, spare))
    intervals = _intervals(best, math.sqrt(max(1.0, misfit / spare)), spare)
    x0, a, b = math.exp(best.x[0]), float(best.x[1]), float(best.x[2])
    found = Drift(x0, a, b, intervals, explained, p_effect, p_fit, len(knees), _doubt(knees, intervals))
    return found if found.unknown is None else replace(found, a=None, b=None, intervals={"x0": intervals["x0"]})


def _untold(knees: Sequence[KneeOfRun]) -> str | None:
    if len(knees) < LEAST_RUNS:
        return f"{len(knees)} runs; at least {LEAST_RUNS} are needed for three unknowns and a test"
    if len({(round(knee.rho * knee.g, 9)) for knee in knees}) < 2:
        return "no two runs differ in rho and g: what moved the knee is not among them"
    if any(not (0 < knee.low <= knee.at <= knee.high) or knee.low == knee.high for knee in knees):
        return "a knee without an interval: how sure it is cannot be weighed"
    return None


def _doubt(knees: Sequence[KneeOfRun], intervals: Mapping[str, tuple[float, float]]) -> str | None:
    """Why a and b of a fit say nothing; None where they do."""
    if len({round(knee.rho, 9) for knee in knees if knee.rho > 0 and knee.g > 0}) < 2:
        return "rho has one value beside 0: how much of it counts (a) and how strongly (b) cannot be told apart"
    wide = [name for name, (low, high) in intervals.items() if name != "x0" and _says_nothing(name, low, high)]
    if wide:
        return f"the interval of {' and '.join(wide)} is as wide as what is allowed: more runs, or ones further apart"
    return None


def _error(knee: Place) -> float:
    """Standard error of ln(place) from its 95 % interval."""
    return math.log(knee.high / knee.low) / (2 * float(stats.norm.ppf((1 + CONFIDENCE) / 2)))


def _intervals(fit: optimize.OptimizeResult, scale: float, spare: int) -> dict[str, tuple[float, float]]:
    covariance = np.linalg.pinv(fit.jac.T @ fit.jac)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, spare)) * scale * np.sqrt(np.maximum(np.diag(covariance), 0))
    x0 = (math.exp(fit.x[0] - half[0]), math.exp(min(fit.x[0] + half[0], 700.0)))
    a = (max(0.0, fit.x[1] - half[1]), min(1.0, fit.x[1] + half[1]))
    b = (max(0.0, fit.x[2] - half[2]), fit.x[2] + half[2])
    return {name: (float(low), float(high)) for name, (low, high) in {"x0": x0, "a": a, "b": b}.items()}


def _says_nothing(name: str, low: float, high: float) -> bool:
    return (low <= 0 and high >= 1) if name == "a" else (low <= 0 and high >= _MOST_B / 2)
