"""How sure a share is: the Wilson score interval."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist


def wilson(successes: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Interval (low, high) that holds the true share of successes with the given confidence.

    Wilson (1927), without continuity correction. It stays within [0, 1] and is right for shares near 1, where the
    textbook interval has no width. With n = 0 nothing is known: (0, 1). Counts need not be whole: those of correlated
    requests are worth less than their number.

    Raises:
        ValueError: not 0 <= successes <= n, or not 0 < confidence < 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be between 0 and n; got {successes} of {n}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1; got {confidence!r}")
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = successes / n
    # Multiplied through by n, so that a tiny n neither underflows nor divides by zero.
    middle = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(successes * (1 - share) + z * z / 4)
    # The bound at a share of 0 or 1 is exactly that share; rounding must not say otherwise.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high
