"""A cell's statistic and interval against values worked out by hand or looked up in tables."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.surface.cells import EMPTY, measure

ONE_WINDOW = np.zeros(100, dtype=np.uint8)


def test_a_medians_interval_is_between_the_order_statistics_of_the_table() -> None:
    """Of 100 independent values the 40th and the 61st hold the median with 95 % (David and Nagaraja, 7.1)."""
    values = np.random.default_rng(1).permutation(np.arange(1.0, 101.0))
    cell = measure("p50", values, ONE_WINDOW)
    assert (cell.value, cell.low, cell.high, cell.n, cell.few) == (50.5, 40.0, 61.0, 100, False)


def test_a_percentile_whose_interval_has_no_upper_end_has_none() -> None:
    cell = measure("p95", np.arange(1.0, 31.0), ONE_WINDOW[:30])
    assert cell.value == pytest.approx(28.55)
    assert (cell.low, cell.high, cell.few) == (None, None, True)


def test_values_that_are_alike_in_time_make_the_interval_wider() -> None:
    values = np.repeat(np.arange(20.0), 20)  # each window of its own height: 400 values tell as much as about 20
    windows = np.repeat(np.arange(20, dtype=np.uint8), 20)
    alone, together = measure("p50", values, np.zeros(400, np.uint8)), measure("p50", values, windows)
    assert alone.value == together.value
    assert together.high - together.low > 3 * (alone.high - alone.low)  # type: ignore[operator]
    mean_alone, mean_together = measure("mean", values, np.zeros(400, np.uint8)), measure("mean", values, windows)
    assert mean_together.high - mean_together.low > 3 * (mean_alone.high - mean_alone.low)  # type: ignore[operator]


def test_a_means_interval_is_students() -> None:
    """36 values 9 and 11: s = sqrt(36 / 35), t = 2.0301 with 35 degrees of freedom, so 10 +- 0.3432."""
    cell = measure("mean", np.tile([9.0, 11.0], 18), ONE_WINDOW[:36])
    assert cell.value == 10
    assert (cell.low, cell.high) == (pytest.approx(9.6568, abs=2e-4), pytest.approx(10.3432, abs=2e-4))


def test_an_attainments_interval_is_wilsons() -> None:
    """9 of 10: Wilson's 95 % interval is 0.5958 to 0.9821 (Newcombe 1998, method 3)."""
    cell = measure("attainment", np.array([1.0] * 9 + [0.0]), ONE_WINDOW[:10])
    assert (cell.value, cell.few) == (0.9, True)
    assert (cell.low, cell.high) == (pytest.approx(0.5958, abs=1e-4), pytest.approx(0.9821, abs=1e-4))


@pytest.mark.parametrize("statistic", ["p50", "p99", "mean", "max", "attainment"])
def test_nothing_is_unknown_and_not_zero(statistic: str) -> None:
    cell = measure(statistic, EMPTY, EMPTY.astype(np.uint8))
    assert (cell.value, cell.low, cell.high, cell.n, cell.few) == (None, None, None, 0, True)


def test_few_values_have_a_mean_without_an_interval_and_a_maximum_never_has_one() -> None:
    values = np.array([1.0, 3.0])
    assert (measure("mean", values, ONE_WINDOW[:2]).value, measure("mean", values, ONE_WINDOW[:2]).low) == (2.0, None)
    assert (measure("max", values, ONE_WINDOW[:2]).value, measure("max", values, ONE_WINDOW[:2]).high) == (3.0, None)
