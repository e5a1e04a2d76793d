"""One cell of a grid: a statistic of its values, with n, interval and the mark of too few."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cliffwatch.stats import sample_needs
from cliffwatch.stats.clusters import WINDOWS, inflation
from cliffwatch.stats.estimates import QuantileEstimate, ShareEstimate, mean_estimate

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
STATISTICS = (*PERCENTILES, "mean", "max", "count", "attainment")
# For a mean, a maximum and a share there is no rule as for percentiles; thirty is the usual least for a mean.
SURE_SAMPLES = 30
CONFIDENCE = 0.95
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        value: None where it is not known.
        n: the requests behind it.
        few: whether they are too few to rely on.
        low, high: the 95 % interval of the value, corrected for correlation within the run (docs/comparison.md), or
            its bounds where only those are known; None where there is none.
    """

    value: float | None
    n: int
    few: bool
    low: float | None = None
    high: float | None = None


EMPTY = np.empty(0)


def measure(statistic: str, values: Array, windows: Array) -> Cell:
    """The statistic of a cell's values.

    Args:
        values: of each request; for attainment 1 or 0, for count anything.
        windows: in which of `WINDOWS` equal windows of the run each request was due.
    """
    n = int(values.size)
    if statistic == "count":
        return Cell(value=float(n), n=n, few=False)
    if statistic in PERCENTILES:
        return _percentile(PERCENTILES[statistic], values, windows)
    few = n < SURE_SAMPLES
    if not n:
        return Cell(value=None, n=0, few=True)
    if statistic == "max":
        return Cell(value=float(values.max()), n=n, few=few)
    if statistic == "mean":
        mean = mean_estimate(values, _totals(windows, values), _totals(windows))
        low, high = (None, None) if few else mean.interval(CONFIDENCE)
        return Cell(mean.value, n, few, low, high)
    share = ShareEstimate(int(values.sum()), n, inflation(_totals(windows, values), _totals(windows)))
    return Cell(share.value, n, few, *share.interval(CONFIDENCE))


def _percentile(p: float, values: Array, windows: Array) -> Cell:
    n, needs = int(values.size), sample_needs(p)
    if n < needs.shown:
        return Cell(value=None, n=n, few=True)
    estimate = QuantileEstimate(np.sort(values), p)
    factor = inflation(_totals(windows, values <= estimate.value), _totals(windows))
    low, high = QuantileEstimate(estimate.ascending, p, factor).interval(CONFIDENCE)
    finite = math.isfinite(low) and math.isfinite(high)
    return Cell(estimate.value, n, n < needs.sure, *((low, high) if finite else (None, None)))


def _totals(windows: Array, weights: Array | None = None) -> Array:
    return np.bincount(windows, weights, minlength=WINDOWS)
