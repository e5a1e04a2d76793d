"""Parts of a composite over the past, against means worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.slo.backtest.composed import Composed
from cliffwatch.slo.backtest.history import Floats
from cliffwatch.slo.prometheus.record import BASE_S
from tests.slo.backtest.past import history

NAN = float("nan")


def composed() -> Composed:
    """Three parts to one: 10 % of few events and 50 % of many; then only the second has any, then nobody; then the
    second alone is known."""
    first = history(np.array([1.0, 0.0, 0.0, NAN]), np.array([0.1, 0.0, 0.0, NAN]))
    second = history(np.array([100.0, 100.0, 0.0, 100.0]), np.array([50.0, 50.0, 0.0, 20.0]))
    return Composed(((first, 3.0), (second, 1.0)))


def close(found: Floats, expected: list[float]) -> bool:
    return bool(found == pytest.approx(expected, nan_ok=True))


def test_ratios_weigh_by_the_parts_and_leave_out_those_without_events() -> None:
    """(3 x 0.1 + 0.5) / 4 = 0.2 however many events each has."""
    assert close(composed().ratio(BASE_S), [0.2, 0.5, NAN, 0.2])


def test_counts_are_of_all_parts() -> None:
    assert close(composed().rate("events", BASE_S), [101, 100, 0, 100])
    assert close(composed().bad_events(BASE_S), [50.1 * 300, 50 * 300, 0, 20 * 300])


def test_a_period_is_a_mean_of_sums() -> None:
    """Over all four minutes: 0.1 of 1, and 120 of 300."""
    begins = np.zeros(4, np.int64)
    assert composed().ratio_since(begins)[3] == pytest.approx((3 * 0.1 + 0.4) / 4)
    assert composed().first_known == 0
