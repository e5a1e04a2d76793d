"""Ranks of order statistics against exact binomial sums, and their coverage over many samples."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats.order import Ranks, order_ranks


def binomial(n: int, p: Fraction) -> tuple[list[int], int]:
    """The chance of each count, as whole parts of the second number: exact, and quick to add."""
    yes, whole = p.numerator, p.denominator
    return [comb(n, k) * yes**k * (whole - yes) ** (n - k) for k in range(n + 1)], whole**n


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(19, 20), Fraction(99, 100)])
@pytest.mark.parametrize("n", [1, 5, 6, 20, 71, 72, 73, 130, 370])
def test_ranks_are_the_tightest_that_exact_sums_allow(n: int, p: Fraction) -> None:
    mass, whole = binomial(n, p)
    low = max((rank for rank in range(1, n + 1) if 40 * sum(mass[:rank]) <= whole), default=None)
    high = min((rank for rank in range(1, n + 1) if 40 * sum(mass[rank:]) <= whole), default=None)
    assert order_ranks(n, float(p)) == Ranks(low, high)


def test_the_smallest_samples_that_have_an_interval() -> None:
    # 0.5^6 <= 0.025 < 0.5^5; 0.95^72 <= 0.025 < 0.95^71; 0.99^368 <= 0.025 < 0.99^367
    for p, n in ((0.5, 6), (0.95, 72), (0.99, 368)):
        assert order_ranks(n, p).pair is not None
        assert order_ranks(n - 1, p).pair is None


def test_a_textbook_case() -> None:
    # Median of 20: ranks 6 and 15 at 95.86 %, as tables of the sign test have it.
    assert order_ranks(20, 0.5).pair == (6, 15)


def test_coverage_over_samples() -> None:
    # 4,000 samples each: at the exact 95 % a count this far below (4 sigma, 1.4 points) comes up once in 30,000.
    rng = np.random.default_rng(1)
    for p, n in ((0.5, 100), (0.95, 300), (0.99, 1500)):
        sample = np.sort(rng.random((4000, n)), axis=1)
        low, high = order_ranks(n, p).pair or (0, 0)
        held = np.mean((sample[:, low - 1] <= p) & (p <= sample[:, high - 1]))
        assert 0.95 - 0.014 <= held <= 0.985


def test_ties_only_widen() -> None:
    # Values on a grid: the true median is 3; 2,000 samples, bound as above.
    rng = np.random.default_rng(2)
    sample = np.sort(rng.integers(1, 6, (2000, 51)), axis=1)
    low, high = order_ranks(51, 0.5).pair or (0, 0)
    assert np.mean((sample[:, low - 1] <= 3) & (sample[:, high - 1] >= 3)) >= 0.95 - 0.02


@given(
    n=st.integers(0, 3_000_000),
    p=st.sampled_from([0.5, 0.95, 0.99]),
    confidence=st.floats(0.5, 0.999),
    inflation=st.floats(1, 300),
)
def test_ranks_lie_in_the_sample_and_widen_with_confidence_and_correlation(
    n: int, p: float, confidence: float, inflation: float
) -> None:
    pair = order_ranks(n, p, confidence, inflation=inflation).pair
    if pair is None:
        return
    assert 1 <= pair[0] <= pair[1] <= n
    for inner in (order_ranks(n, p, confidence / 2, inflation=inflation), order_ranks(n, p, confidence)):
        assert inner.pair is not None
        assert pair[0] <= inner.pair[0] <= inner.pair[1] <= pair[1]


@pytest.mark.parametrize(
    ("n", "p", "confidence", "inflation"),
    [(-1, 0.5, 0.95, 1), (9, 1, 0.95, 1), (9, 0.5, 1, 1), (9, 0.5, 0.95, 0.5), (9, 0.5, 0.95, float("inf"))],
)
def test_nonsense_is_refused(n: int, p: float, confidence: float, inflation: float) -> None:
    with pytest.raises(ValueError, match="needs"):
        order_ranks(n, p, confidence, inflation=inflation)
