"""How many of so many independent draws to expect, and between which counts chance keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, sqrt
from statistics import NormalDist

CONFIDENCE = 0.95
_DEVIATIONS = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


@dataclass(frozen=True)
class Expected:
    """The mean count, and the counts between which it lies for 95 of 100 seeds; null where draws hang together."""

    mean: float
    low: int | None
    high: int | None


def expected(n: int, share: float, *, bounded: bool = True) -> Expected:
    """Of `n` draws that each hit with probability `share`: the binomial's normal approximation, rounded outwards."""
    mean = n * share
    half = _DEVIATIONS * sqrt(mean * (1 - share))
    if not bounded:
        return Expected(mean, None, None)
    return Expected(mean, max(0, floor(mean - half)), min(n, ceil(mean + half)))
