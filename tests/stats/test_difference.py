"""Differences: how often chance alone looks like a change, and how often a change is found."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats.difference import SMALLEST_P, difference_interval, difference_p, holm
from cliffwatch.stats.estimates import QuantileEstimate, ShareEstimate


def quantile(values: np.ndarray, p: float) -> QuantileEstimate:  # type: ignore[type-arg]
    return QuantileEstimate(np.sort(values), p)


@pytest.mark.parametrize(("p", "n"), [(0.5, 200), (0.95, 400), (0.99, 1500)])
def test_chance_alone_is_called_a_change_at_most_as_often_as_said(p: float, n: int) -> None:
    # 1,000 pairs of equal laws; at a true 5 % more than 78 alarms (4 sigma) come up once in 30,000.
    rng = np.random.default_rng(1)
    alarms = sum(
        difference_p(quantile(rng.lognormal(0, 0.5, n), p), quantile(rng.lognormal(0, 0.5, n), p)) < 0.05
        for _ in range(1000)
    )
    assert alarms <= 78


def test_the_interval_holds_the_true_difference() -> None:
    # P95 of exponentials of mean 1 and 1.2 differ by 0.2 ln 20; 1,000 pairs, 4 sigma is 2.8 points.
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(1000):
        low, high = difference_interval(
            quantile(rng.exponential(1, 500), 0.95), quantile(rng.exponential(1.2, 500), 0.95)
        )
        held += low <= 0.2 * math.log(20) <= high
    assert held / 1000 >= 0.95 - 0.028


def test_a_tenth_more_is_found() -> None:
    rng = np.random.default_rng(3)
    found = sum(
        difference_p(quantile(rng.lognormal(0, 0.3, 2000), 0.5), quantile(1.1 * rng.lognormal(0, 0.3, 2000), 0.5))
        < 0.01
        for _ in range(100)
    )
    assert found >= 95


def test_shares_are_newcombes() -> None:
    # Newcombe 1998, table II, method 10, (a): 56/70 against 48/80, difference 0.2, interval 0.0524 to 0.3339
    low, high = difference_interval(ShareEstimate(48, 80), ShareEstimate(56, 70))
    assert (low, high) == (pytest.approx(0.0524, abs=1e-4), pytest.approx(0.3339, abs=1e-4))


def test_ends_of_the_scale() -> None:
    same = ShareEstimate(5, 100)
    assert difference_p(same, same) == 1
    assert difference_p(ShareEstimate(0, 100_000), ShareEstimate(100_000, 100_000)) == SMALLEST_P
    tiny = QuantileEstimate(np.array([1.0]), 0.99)
    assert difference_interval(tiny, QuantileEstimate(np.array([9.0]), 0.99)) == (-math.inf, math.inf)
    assert difference_p(tiny, QuantileEstimate(np.array([9.0]), 0.99)) == 1


def test_p_is_where_the_interval_touches_zero() -> None:
    base, new = ShareEstimate(40, 100), ShareEstimate(55, 100)
    p = difference_p(base, new)
    assert difference_interval(base, new, 1 - p)[0] == pytest.approx(0, abs=1e-6)
    assert difference_p(new, base) == pytest.approx(p)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1)))
def test_holm_is_between_none_and_bonferroni_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for one, after in zip(p_values, adjusted, strict=True):
        assert one <= after <= min(1, one * len(p_values)) or math.isclose(one, after)
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert all(adjusted[a] <= adjusted[b] for a, b in pairwise(order))
