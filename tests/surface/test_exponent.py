"""Scaling exponents: of power laws with noise, of laws that are none, and where too little is known."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.surface.exponent import Scaling, scaling
from cliffwatch.surface.grid import Points
from cliffwatch.surface.series import series_of

LENGTHS = [float(512 * 2**k) for k in range(8)]


def drawn(level: np.ndarray, noise: float, seed: int, values: int = 4) -> Scaling:
    """The scaling of `values` latencies a length that lie about exp(level) by a factor."""
    random = np.random.default_rng(seed)
    points: Points = [(x, np.exp(one + random.normal(0, noise, values))) for x, one in zip(LENGTHS, level, strict=True)]
    return scaling(series_of(points, "mean"))


LOG = np.log(LENGTHS)


def test_a_power_law_without_noise_has_its_exponent() -> None:
    found = drawn(1.9 * LOG - 12, 0.0, 1)
    assert found.whole is not None and found.not_a_law is None and found.too_few is None
    assert found.whole.exponent == pytest.approx(1.9)
    assert (found.points, found.n, found.first, found.last) == (8, 32, 512, 65536)


def test_intervals_hold_the_exponent_and_a_law_is_seldom_denied() -> None:
    """300 laws with 10 % noise: 285 intervals of 95 % are expected to hold it; under 274 has a chance below 0.3 %.

    A law is denied 1 time in 100 at most: over 10 of 300 has a chance below 0.1 %.
    """
    found = [drawn(1.2 * LOG - 9, 0.1, seed) for seed in range(300)]
    held = sum(one.whole is not None and one.whole.low <= 1.2 <= one.whole.high for one in found)
    assert held >= 274
    assert sum(one.not_a_law is not None for one in found) <= 10


def test_a_sum_of_powers_is_no_power_law_and_its_ends_are_told() -> None:
    """ln(latency) a parabola of ln(length), 0.5 at 512 and 1.5 at 64k: its slope grows by 1 over seven octaves."""
    bend = 1 / (2 * np.log(128))
    level = 0.5 * (LOG - LOG[0]) + bend * (LOG - LOG[0]) ** 2
    found = drawn(level, 0.02, 3)
    assert found.start is not None and found.end is not None and found.not_a_law is not None
    assert found.start.low <= 0.5 <= found.start.high
    assert found.end.low <= 1.5 <= found.end.high
    assert "from 0.5" in found.not_a_law and "at 65536" in found.not_a_law


def test_a_slight_bend_leaves_a_law_one_and_a_zigzag_is_none() -> None:
    slight = drawn(1.0 * LOG + 0.01 * (LOG - LOG[0]) ** 2, 0.001, 4)  # the exponent grows by 0.1
    assert slight.not_a_law is None
    zigzag = drawn(1.0 * LOG + 0.3 * (-1.0) ** np.arange(8), 0.01, 5)
    assert zigzag.not_a_law is not None and "half of the points" in zigzag.not_a_law


def test_single_values_are_judged_by_their_misfit() -> None:
    found = drawn(1.5 * LOG - 9, 0.05, 6, values=1)
    assert found.whole is not None and found.whole.low <= 1.5 <= found.whole.high
    assert found.whole.high > found.whole.low


def test_too_few_points_and_points_at_zero() -> None:
    few = scaling(series_of([(0.0, np.ones(3)), *((x, np.ones(3)) for x in LENGTHS[:4])]))
    assert few.whole is None and few.too_few == "4 points on the axis; at least 5 are needed"
    assert scaling(series_of([])).n == 0
    flat = scaling(series_of([(0.0, np.ones(3)), *((x, np.ones(3)) for x in LENGTHS)]))
    assert flat.whole is not None and flat.whole.exponent == pytest.approx(0)
