"""Tests of distributions, each with its false-alarm rate.

All are run on fixed seeds, so that none alarms by chance from run to run; the rate says how strict they are: bounds
are set where a right generator would exceed them once in 10,000 seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

# Upper 1e-4 quantiles of chi-square by degrees of freedom (tables).
CHI_SQUARE = {1: 15.14, 2: 18.42, 3: 21.11, 4: 23.51, 5: 25.74, 9: 33.72}
Z = 3.89  # two-sided 1e-4 of the normal distribution
KOLMOGOROV = math.sqrt(math.log(2 / 1e-4) / 2)  # of sqrt(n) times the largest distance, 2.225


def kolmogorov(sample: Sequence[float], cdf: Callable[[float], float]) -> float:
    """sqrt(n) times the largest distance between the sample's steps and `cdf`."""
    ordered = sorted(sample)
    n = len(ordered)
    expected = [cdf(value) for value in ordered]
    above = max((index + 1) / n - value for index, value in enumerate(expected))
    below = max(value - index / n for index, value in enumerate(expected))
    return math.sqrt(n) * max(above, below)


def chi_square(counts: Sequence[int], shares: Sequence[float]) -> float:
    """Sum of (observed - expected)^2 / expected; `shares` sum to 1."""
    n = sum(counts)
    assert math.isclose(sum(shares), 1)
    return sum((count - n * share) ** 2 / (n * share) for count, share in zip(counts, shares, strict=True))


def binomial_z(successes: int, n: int, p: float) -> float:
    """Standard deviations that `successes` of `n` are from the expected share `p`."""
    return (successes - n * p) / math.sqrt(n * p * (1 - p))


def dispersion_z(counts: Sequence[int]) -> float:
    """How far the variance over the mean of Poisson counts is from 1: (D - 1) sqrt((bins - 1) / 2)."""
    return float((np.var(counts, ddof=1) / np.mean(counts) - 1) * math.sqrt((len(counts) - 1) / 2))


def lag_z(values: Sequence[float]) -> float:
    """sqrt(n) times the correlation of each value with the next."""
    return float(np.corrcoef(values[:-1], values[1:])[0, 1] * math.sqrt(len(values)))
