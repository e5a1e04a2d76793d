"""Knees: how many, where, how sure."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.surface.knee import find_knee

X = np.array([1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128], dtype=float)
CURVES = {
    (): 5 + 0.3 * X,
    (20.0,): 5 + 0.5 * np.maximum(X - 20, 0),
    (8.0, 64.0): 10 + 2 * np.maximum(X - 8, 0) - 1.9 * np.maximum(X - 64, 0),
}


@pytest.mark.parametrize("breaks", list(CURVES))
def test_breaks_are_counted_and_their_intervals_hold_them(breaks: tuple[float, ...]) -> None:
    # 20 curves each. A count that is right in 98 of 100 is under 18 here in 1 of 140; an interval that holds 95 of 100
    # misses more than 4 of 20 in 1 of 390 (binomial).
    generator = np.random.default_rng(21)
    right = missed = 0
    for _ in range(20):
        points = [(x, y * np.exp(generator.normal(0, 0.05, 8))) for x, y in zip(X, CURVES[breaks], strict=True)]
        found = find_knee(points)
        if len(found.breaks) == len(breaks):
            right += 1
            missed += any(not one.low <= at <= one.high for one, at in zip(found.breaks, breaks, strict=True))
    assert right >= 18
    assert missed <= 4


def test_a_curve_without_noise_is_described_exactly() -> None:
    # 10 up to 8, then 2 a unit up to 64 (10 + 2 x 56 = 122), then 0.1 a unit up to 128 (122 + 6.4).
    found = find_knee([(x, np.array([y])) for x, y in zip(X, CURVES[8.0, 64.0], strict=True)])
    assert found.phases == ("flat", "growing", "flat")
    assert [one.at for one in found.breaks] == pytest.approx([8, 64], rel=0.06)
    assert found.levels == pytest.approx((10, 10, 122, 128.4), rel=0.06)
    assert found.slopes == pytest.approx((0, 2, 0.1), abs=0.06)


def test_throughput_saturates() -> None:
    generator = np.random.default_rng(22)
    points = [(x, np.minimum(x, 30) * 10 * np.exp(generator.normal(0, 0.03, 5))) for x in X]
    found = find_knee(points)
    assert found.phases[-1] == "flat"
    assert found.breaks[-1].low <= 30 <= found.breaks[-1].high


def test_too_few_points_say_so() -> None:
    found = find_knee([(x, np.ones(3)) for x in (1.0, 2.0, 3.0, 4.0)])
    assert found.breaks == ()
    assert found.too_few is not None
    assert found.n == 12
    assert find_knee([]).too_few is not None


def test_the_same_values_give_the_same_answer() -> None:
    points = [(x, np.array([y, y * 1.1])) for x, y in zip(X, CURVES[20.0,], strict=True)]
    assert find_knee(points) == find_knee(list(reversed(points)))
