"""Percentiles, shares and rates with intervals of any confidence."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cliffwatch.stats.estimates import QuantileEstimate, RateEstimate, ShareEstimate, student
from cliffwatch.stats.wilson import wilson


def test_a_percentile_is_numpys_and_its_interval_is_made_of_its_values() -> None:
    values = np.sort(np.random.default_rng(1).lognormal(0, 1, 1000))
    for p in (0.5, 0.95, 0.99):
        one = QuantileEstimate(values, p)
        assert one.value == pytest.approx(np.quantile(values, p))
        low, high = one.interval(0.95)
        assert low in values
        assert high in values
        assert low < one.value < high
        assert QuantileEstimate(values, p, inflation=2).interval(0.95)[0] < low


def test_an_end_that_the_data_cannot_give_is_infinite() -> None:
    one = QuantileEstimate(np.arange(1.0, 101.0), 0.99)
    # 4 or more of 100 beyond the P99: 1.84 %, 3 or more 7.9 %, so the low end is the 97th
    assert one.interval(0.95) == (97, math.inf)
    assert QuantileEstimate(np.array([5.0]), 0.5).value == 5
    assert QuantileEstimate(np.array([5.0]), 0.5).interval(0.95) == (-math.inf, math.inf)


def test_a_share_of_correlated_requests_is_wilsons_of_fewer() -> None:
    assert ShareEstimate(30, 300).interval(0.95) == wilson(30, 300)
    assert ShareEstimate(30, 300, inflation=3).interval(0.95) == wilson(10, 100)
    assert ShareEstimate(300, 300, inflation=7.3).interval(0.95)[1] == 1


def test_students_quantiles_are_the_tables() -> None:
    for probability, value in ((0.975, 2.0930), (0.995, 2.8609), (0.9995, 3.8834), (0.025, -2.0930)):
        assert student(probability, 19) == pytest.approx(value, rel=3e-3)


def test_a_rate_varies_as_its_windows_do() -> None:
    # Poisson counts in 20 windows: 95 % of 2,000 intervals hold the true rate, 4 sigma is 2 points.
    counts = np.random.default_rng(2).poisson(50, (2000, 20))
    held = 0
    for line in counts:
        low, high = RateEstimate(float(line.mean()), tuple(line.tolist())).interval(0.95)
        held += low <= 50 <= high
    assert 0.93 <= held / 2000 <= 0.97
