"""Where an objective's misses cross what it allows: a logistic response to the rate, fitted near the edge.

logit(share of misses) = a + b (rate - middle), by iteratively reweighted least squares (McCullagh and Nelder,
"Generalized Linear Models", 2nd ed., 4.4). A probe weighs as many independent requests as its correlated ones are
worth, XX straight: log P(T > t) = -(mu - rate) t. The rate at the edge has
Fieller's interval (Finney, "Probit Analysis", 3rd ed., 4.6), widened where the probes scatter more than their own
variances say (McCullagh and Nelder, 4.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from cliffwatch.capacity.evidence import Count

REACH = 3.0  # logits from the edge at which a probe's weight is none: misses of 0.3 % and 51 % about 5 %
STEPS, TOLERANCE = 50, 1e-9
MIN_SLOPE_Z = 2.0  # the misses must rise with the rate, beyond chance
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Crossing:
    """The rate at which an objective's misses are just what it allows, with its interval; `slope` in logits a rate."""

    rate: float
    low: float
    high: float
    slope: float
    probes: int


def crossing(rates: Sequence[float], counts: Sequence[Count], target: float, confidence: float) -> Crossing | None:
    """Fit one objective's probes; None where they do not show a crossing, or not with an interval of two ends."""
    edge = math.log((1 - target) / target)
    x = np.asarray(rates, dtype=np.float64)
    n, bad, spread = (np.array([getattr(c, name) for c in counts], dtype=float) for name in ("n", "bad", "inflation"))
    seen = np.log((bad / spread + 0.5) / ((n - bad) / spread + 0.5))
    weight = np.where(n > 0, np.clip(1 - ((seen - edge) / REACH) ** 2, 0, 1), 0)
    used = weight > 0
    if used.any():
        # One for all: a probe that missed more by chance shows more inflation too, and would weigh less for it.
        weight /= np.average(spread[used], weights=(n * weight)[used])
    trials, misses = n, bad
    if np.unique(x[used]).size < 2:
        return None
    x, trials, misses = x[used], (trials * weight)[used], (misses * weight)[used]
    middle, scale = float(np.average(x, weights=trials)), float(np.ptp(x))
    fit = _fit((x - middle) / scale, trials, misses)
    if fit is None:
        return None
    a, b, covariance = fit
    ends = _fieller(a - edge, b, covariance, NormalDist().inv_cdf(0.5 + confidence / 2))
    if ends is None or b < MIN_SLOPE_Z * math.sqrt(covariance[1, 1]):
        return None
    rate, low, high = (middle + scale * value for value in ((edge - a) / b, *ends))
    return Crossing(rate=rate, low=low, high=high, slope=b / scale, probes=len(x))


def _fit(x: Array, trials: Array, misses: Array) -> tuple[float, float, Array] | None:
    """Intercept, slope, and their covariance; None where the iteration does not settle (misses all or none)."""
    design = np.stack([np.ones_like(x), x], axis=1)
    share = (misses + 0.5) / (trials + 1)
    linear = np.log(share / (1 - share))
    found = np.zeros(2)
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(linear, -30, 30)))
        weight = np.maximum(trials * share * (1 - share), 1e-12)
        working = linear + (misses - trials * share) / weight
        information = design.T @ (weight[:, None] * design)
        if np.linalg.cond(information) > 1e12:
            return None
        fresh = np.linalg.solve(information, design.T @ (weight * working))
        done, found, linear = bool(np.max(np.abs(fresh - found)) < TOLERANCE), fresh, design @ fresh
        if done:
            break
    else:
        return None
    chi_square = float(np.sum((misses - trials * share) ** 2 / weight))
    dispersion = max(1.0, chi_square / (len(x) - 2)) if len(x) > 2 else 1.0
    return float(found[0]), float(found[1]), dispersion * np.linalg.inv(information)


def _fieller(a: float, b: float, covariance: Array, z: float) -> tuple[float, float] | None:
    """Ends of all x at which a + b x could be zero; None where that is not one interval."""
    square = b * b - z * z * float(covariance[1, 1])
    middle = a * b - z * z * float(covariance[0, 1])
    constant = a * a - z * z * float(covariance[0, 0])
    root = middle * middle - square * constant
    if square <= 0 or root < 0:
        return None
    return (-middle - math.sqrt(root)) / square, (-middle + math.sqrt(root)) / square
