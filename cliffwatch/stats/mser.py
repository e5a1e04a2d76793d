"""Where a series settles: MSER-5, and whether what is left still drifts.

MSER (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997) cuts
the first d values that make the mean of the rest most certain: the d in the first half that minimises
sum((x_i - mean of the rest)^2) / (n - d)^2. MSER-5 (White, Cobb, Spratt, "A comparison of five steady-state truncation
heuristics for simulation", Winter Simulation Conference 2000) does so on means of five consecutive values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

BATCH = 5
MAX_BATCHES = 200_000  # beyond a million values the batches grow, in multiples of five
MIN_BATCHES = 20
SMALLEST_S = 1e-9  # a logarithm needs a positive number; nothing is shorter than the clock's tick
Series = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """`values` to leave out at the start; `settled` is False where the best cut is at the end of the first half, which
    means that the series never settles or is too short to tell (MSER's own warning)."""

    values: int
    settled: bool


def mser(series: Series) -> Cut | None:
    """MSER-5 of a series in order of time; None for under 100 values (20 batches).

    Raises:
        ValueError: a value is not finite.
    """
    if not np.isfinite(series).all():
        raise ValueError("a series must not hold NaN or infinite values")
    size = BATCH * max(1, -(-len(series) // (BATCH * MAX_BATCHES)))
    count = len(series) // size
    if count < MIN_BATCHES:
        return None
    means = series[: count * size].reshape(count, size).mean(axis=1)
    means = means - means.mean()  # so that sums of squares keep their digits
    left = np.arange(count, 0, -1)
    sums, squares = (np.cumsum(part[::-1])[::-1] for part in (means, means**2))
    half = count // 2
    scores = np.maximum(squares - sums**2 / left, 0)[: half + 1] / left[: half + 1] ** 2.0
    best = int(np.argmin(scores))
    return Cut(values=best * size, settled=best < half)


def kendall_p(values: Series) -> float:
    """Two-sided p-value of Mann and Kendall's test that a short series has no trend (normal, corrected for ties and for
    continuity: Kendall, "Rank Correlation Methods", 4.7 and 5.1). 1 under three values."""
    n = len(values)
    if n < 3:
        return 1.0
    score = float(np.sum(np.triu(np.sign(values[None, :] - values[:, None]), 1)))
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return 2 * NormalDist().cdf(-max(0.0, abs(score) - 1) / math.sqrt(variance))
