"""How sure a percentile is: the interval between two order statistics, whatever the distribution.

The number of n independent values at or under the true p-quantile is binomial (n, p), so the l-th and u-th smallest
values hold it with probability P(l <= B <= u - 1) at least (David and Nagaraja, "Order Statistics", 3rd ed., 7.1).
Ranks are equal-tailed: on neither side is the chance to miss more than half of 1 - confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

# Binomial mass further from the mean than this is under 1e-20 and left out, so that a million rows cost nothing.
_DEVIATIONS, _SLACK = 12, 40


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of the two order statistics, 1 is the smallest; None where no value is extreme enough."""

    low: int | None
    high: int | None

    @property
    def pair(self) -> tuple[int, int] | None:
        """Both ranks; None where the sample is too small for an interval with two ends."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def order_ranks(n: int, p: float, confidence: float = 0.95, *, inflation: float = 1.0) -> Ranks:
    """Ranks whose values hold the p-quantile of what n values were drawn from, with at least this confidence.

    Args:
        inflation: by how much serial correlation inflates the variance of a share of these values
            (`stats.clusters.inflation`); the ranks are those of n / inflation values, spread over n, rounded outwards.

    Raises:
        ValueError: n is negative, p or the confidence not between 0 and 1, or the inflation under 1.
    """
    if n < 0 or not 0 < p < 1 or not 0 < confidence < 1 or not 1 <= inflation < math.inf:
        raise ValueError(
            f"needs n >= 0, 0 < p < 1, 0 < confidence < 1, inflation >= 1; got {n}, {p}, {confidence}, {inflation}"
        )
    effective = int(n / inflation)
    if effective < 1:
        return Ranks(None, None)
    low, high = _independent(effective, p, confidence)
    if effective != n:
        low = (low - 1) * n // effective + 1 if low >= 1 else 0
        high = -(-high * n // effective) if high <= effective else n + 1
    return Ranks(low if low >= 1 else None, high if high <= n else None)


@lru_cache(maxsize=4096)
def _independent(n: int, p: float, confidence: float) -> tuple[int, int]:
    """Ranks for independent values: 0 and n + 1 stand for none."""
    reach = int(_DEVIATIONS * math.sqrt(n * p * (1 - p))) + _SLACK
    first, last = max(0, int(n * p) - reach), min(n, int(n * p) + reach)
    below = np.arange(first, last)
    # P(B = k + 1) / P(B = k), multiplied up and scaled to one: no factorials, so nothing overflows
    logs = np.concatenate([[0.0], np.cumsum(np.log((n - below) / (below + 1) * (p / (1 - p))))])
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    tail = (1 - confidence) / 2
    low = first + int(np.count_nonzero(np.cumsum(mass) <= tail))
    high = last + 1 - int(np.count_nonzero(np.cumsum(mass[::-1]) <= tail))
    return low, high
