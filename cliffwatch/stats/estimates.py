"""Figures of one run with intervals of any confidence: percentile, share, rate. Each allows for serial correlation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from cliffwatch.stats.order import order_ranks
from cliffwatch.stats.wilson import wilson


@dataclass(frozen=True)
class QuantileEstimate:
    """Percentile `p` of values in ascending order, at least one; the interval is between order statistics."""

    ascending: np.ndarray[Any, Any]
    p: float
    inflation: float = 1.0

    @cached_property
    def value(self) -> float:
        # What np.quantile gives, without its passing over all of a million values again.
        place = self.p * (len(self.ascending) - 1)
        low = math.floor(place)
        high = min(low + 1, len(self.ascending) - 1)
        start = float(self.ascending[low])
        return start + (float(self.ascending[high]) - start) * (place - low)

    def interval(self, confidence: float) -> tuple[float, float]:
        ranks = order_ranks(len(self.ascending), self.p, confidence, inflation=self.inflation)
        return (
            -math.inf if ranks.low is None else min(self.value, float(self.ascending[ranks.low - 1])),
            math.inf if ranks.high is None else max(self.value, float(self.ascending[ranks.high - 1])),
        )


@dataclass(frozen=True)
class ShareEstimate:
    """A share of `n` requests, at least one; the interval is Wilson's, of n / inflation requests."""

    hits: int
    n: int
    inflation: float = 1.0

    @property
    def value(self) -> float:
        return self.hits / self.n

    def interval(self, confidence: float) -> tuple[float, float]:
        return wilson(self.hits / self.inflation, self.n / self.inflation, confidence)


@dataclass(frozen=True)
class RateEstimate:
    """A rate over a run, and the rates in its equal windows of time (two or more), between which it varies."""

    value: float
    windows: tuple[float, ...]

    def interval(self, confidence: float) -> tuple[float, float]:
        count = len(self.windows)
        error = float(np.std(self.windows, ddof=1)) / math.sqrt(count)
        half = student(0.5 + confidence / 2, count - 1) * error
        return self.value - half, self.value + half


def student(probability: float, degrees: int) -> float:
    """Quantile of Student's t by its expansion around the normal one (Abramowitz and Stegun 26.7.5).

    Within 0.3 % for 19 degrees of freedom or more and probabilities from 0.0005 to 0.9995.
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    correction: float = sum(term / degrees**power for power, term in enumerate(terms, start=1))
    return z + correction


@dataclass(frozen=True)
class MeanEstimate:
    """A mean and its standard error, which has `degrees` degrees of freedom."""

    value: float
    error: float
    degrees: int

    def interval(self, confidence: float) -> tuple[float, float]:
        half = student(0.5 + confidence / 2, self.degrees) * self.error
        return self.value - half, self.value + half


def mean_estimate(
    values: np.ndarray[Any, Any], sums: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]
) -> MeanEstimate:
    """The mean of at least one value, from the values and from their sums and counts in each window of time.

    Its error is that of independent values or, where greater, that between the windows (ratio estimator for clusters;
    Cochran, "Sampling Techniques", 3rd ed., 9A.1), then with the degrees of freedom of the windows.
    """
    n, mean = values.size, float(values.mean())
    alone = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    windows = int(np.count_nonzero(counts))
    between = 0.0
    if windows > 1:
        between = math.sqrt(float(np.sum((sums - mean * counts) ** 2)) * windows / (windows - 1)) / n
    return MeanEstimate(mean, *((between, windows - 1) if between > alone else (alone, max(1, n - 1))))
