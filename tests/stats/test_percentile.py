"""Percentiles: values worked out by hand, and the rule of how many samples each needs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cliffwatch.stats import percentile, sample_needs


@pytest.mark.parametrize(
    ("p", "shown", "sure"),
    [(0.5, 2, 20), (0.9, 10, 100), (0.95, 20, 200), (0.99, 100, 1000), (0.999, 1000, 10000), (2 / 3, 3, 30)],
)
def test_sample_needs(p: float, shown: int, sure: int) -> None:
    # 2/3 is not a finite decimal: as written (0.666...66) it needs a hair under 3 and 30, rounded up.
    needs = sample_needs(p)
    assert (needs.shown, needs.sure) == (shown, sure)


@pytest.mark.parametrize("p", [0, 1, -0.1, 95, math.nan])
def test_percentile_must_be_a_share(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        sample_needs(p)


def test_interpolates_linearly() -> None:
    # Rank 0.95 x 20 = 19 of 0..20 is the value 19 exactly; rank 0.5 x 3 = 1.5 of 1, 2, 4, 8 lies between 2 and 4.
    assert percentile(range(21), 0.95).value == pytest.approx(19)
    assert percentile([8, 1, 4, 2], 0.5).value == 3


@pytest.mark.parametrize(
    ("n", "has_value", "few"), [(19, False, True), (20, True, True), (199, True, True), (200, True, False)]
)
def test_few_samples_are_marked_and_too_few_are_not_shown(n: int, has_value: bool, few: bool) -> None:
    result = percentile(np.ones(n), 0.95)
    assert (result.value is not None, result.few, result.n) == (has_value, few, n)


def test_nothing_has_no_percentile() -> None:
    result = percentile([], 0.5)
    assert (result.value, result.n, result.few) == (None, 0, True)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_unknown_values_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="NaN"):
        percentile([1.0, bad] * 50, 0.5)
