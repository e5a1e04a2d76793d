"""The knee: found where goodput bends, not found where the probes cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.capacity.knee import find_knee


def test_the_place_where_goodput_stops_following_is_found():
    rates = [10.0, 20.0, 40.0, 60.0, 70.0, 80.0, 100.0]
    knee = find_knee(rates, [min(rate, 65.0) for rate in rates])
    assert knee.rate == pytest.approx(65.0, abs=0.5)
    assert knee.low <= 65.5
    assert knee.high >= 64.5
    assert knee.n == 7


def test_its_interval_holds_the_true_knee():
    # 95 %: fewer than 88 of 100 come by chance once in 230 runs; the seed is fixed
    rng, rates = np.random.default_rng(3), np.array([10.0, 20.0, 35.0, 50.0, 60.0, 70.0, 80.0, 95.0])
    held = 0
    for _ in range(100):
        knee = find_knee(rates, np.minimum(rates, 65.0) + rng.normal(0, 1.0, len(rates)))
        held += knee.low is not None and knee.high is not None and knee.low <= 65.0 <= knee.high
    assert held >= 88


@pytest.mark.parametrize(
    ("rates", "goodput"),
    [
        ([10.0, 20.0, 30.0, 40.0], [10.0, 20.0, 25.0, 25.0]),
        ([10.0, 20.0, 20.0, 30.0, 40.0, 40.0], [10.0, 20.0, 20.0, 25.0, 25.0, 25.0]),
        ([10.0, 20.0, 30.0, 40.0, 50.0], [10.0, 20.0, 30.0, 40.0, 50.0]),
        ([10.0, 20.0, 30.0, 40.0, 50.0], [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
    ids=["four rates", "four distinct", "straight", "nothing good"],
)
def test_it_is_not_made_up(rates, goodput):
    knee = find_knee(rates, goodput)
    assert knee.rate is None
    assert knee.reason
    assert knee.n == len(rates)
