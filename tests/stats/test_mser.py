"""MSER-5 against its definition written out, and on series that settle, drift, or do neither."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats.mser import MAX_BATCHES, Cut, kendall_p, mser


def by_definition(values: list[float]) -> Cut:
    means = [float(np.mean(values[start : start + 5])) for start in range(0, len(values) // 5 * 5, 5)]
    scores = []
    for cut in range(len(means) // 2 + 1):
        rest = np.array(means[cut:])
        scores.append(float(np.sum((rest - rest.mean()) ** 2)) / len(rest) ** 2)
    best = int(np.argmin(scores))
    return Cut(best * 5, best < len(means) // 2)


@given(seed=st.integers(0, 2**32), n=st.integers(100, 400), bias=st.floats(0, 20))
def test_it_is_what_the_formula_says(seed: int, n: int, bias: float) -> None:
    values = np.random.default_rng(seed).normal(5, 1, n) + bias * np.exp(-np.arange(n) / 30)
    assert mser(values) == by_definition(values.tolist())


def test_a_slow_start_is_cut_and_little_more() -> None:
    rng = np.random.default_rng(5)
    cuts = []
    for _ in range(100):
        values = rng.lognormal(0, 0.3, 2000)
        values[:200] *= 3
        cuts.append(mser(values) or Cut(0, False))
    assert all(cut.settled for cut in cuts)
    assert all(200 <= cut.values <= 400 for cut in cuts)


def test_a_settled_series_is_left_alone() -> None:
    # The median cut of 200 settled series is under 1 % of them; a tenth at most in 95 of 100.
    rng = np.random.default_rng(6)
    cuts = [cut.values for _ in range(200) if (cut := mser(rng.lognormal(0, 0.5, 2000)))]
    assert np.median(cuts) <= 20
    assert np.quantile(cuts, 0.95) <= 200


def test_a_series_that_only_drifts_never_settles() -> None:
    cut = mser(np.linspace(1, 9, 1000))
    assert cut is not None
    assert not cut.settled


def test_too_short_and_not_finite() -> None:
    assert mser(np.ones(99)) is None
    assert mser(np.ones(100)) == Cut(0, True)
    with pytest.raises(ValueError, match="NaN"):
        mser(np.array([1.0, np.nan] * 60))


def test_millions_of_values_keep_their_bound() -> None:
    started = time.process_time()
    cut = mser(np.random.default_rng(8).random(5 * MAX_BATCHES + 7))
    assert cut is not None
    assert cut.values % 10 == 0  # batches of ten
    assert time.process_time() - started < 2


def test_trends_are_found_and_none_is_invented() -> None:
    assert kendall_p(np.arange(20.0)) < 1e-6
    # Two-sided for 4 values in order: score 6, variance 26/3, z = 5 / 2.944, by hand 0.0894
    assert kendall_p(np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(0.0894, abs=1e-4)
    assert kendall_p(np.ones(20)) == 1
    assert kendall_p(np.array([1.0, 2.0])) == 1
    rng = np.random.default_rng(9)
    alarms = sum(kendall_p(rng.normal(size=20)) < 0.01 for _ in range(2000))
    assert alarms <= 38  # 20 expected, 4 sigma
