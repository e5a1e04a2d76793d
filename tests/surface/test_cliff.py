"""Cliffs: found where they are, not found where there are none, described by right figures."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.surface.cliff import CHANGE_POINT, SECOND_DERIVATIVE, find_cliffs
from cliffwatch.surface.grid import Points
from cliffwatch.surface.series import series_of
from tests.surface.curves import curve

LENGTHS = [512.0 * 2**k for k in range(8)]


def test_cliffs_are_found() -> None:
    # The detector finds 96 to 97 of 100 of the family (benchmarks/cliffs.py); one that finds 95 of 100 finds under 275
    # of 300 in less than one of 50 tries (binomial).
    generator = np.random.default_rng(11)
    hits = others = 0
    for _ in range(300):
        points, place = curve(generator, cliff=True)
        assert place is not None
        cliffs = find_cliffs(series_of(points)).cliffs
        right = [cliff for cliff in cliffs if cliff.low <= place[0] and cliff.high >= place[1]]
        hits += bool(right)
        others += len(cliffs) - len(right)
    assert hits >= 275
    assert others <= 3


def test_clean_noisy_curves_have_none() -> None:
    # One false cliff in 100 curves is allowed; the threshold is made for half of one.
    generator = np.random.default_rng(12)
    assert sum(len(find_cliffs(series_of(curve(generator, cliff=False)[0])).cliffs) for _ in range(300)) <= 3


def points_with(levels: list[float], values: int = 8, noise: float = 0.02) -> Points:
    generator = np.random.default_rng(5)
    return [(x, y * np.exp(generator.normal(0, noise, values))) for x, y in zip(LENGTHS, levels, strict=True)]


def test_a_jump_is_described_by_its_neighbours_and_by_what_the_trend_leaves() -> None:
    # Doubling lengths double the latency; from 8k on it is 2.5 times that: 2 x 2.5 = 5, +400 %, of which +150 % beyond.
    levels = [0.01 * 2**k * (2.5 if k >= 4 else 1) for k in range(8)]
    (cliff,) = find_cliffs(series_of(points_with(levels))).cliffs
    assert (cliff.after, cliff.before) == (4096, 8192)
    assert (cliff.low, cliff.high) == (4096, 8192)
    assert cliff.jump == pytest.approx(4.0, rel=0.05)
    assert cliff.beyond_low < 1.5 < cliff.beyond_high
    assert cliff.beyond == pytest.approx(1.5, rel=0.05)
    assert (cliff.n_after, cliff.n_before) == (8, 8)
    assert cliff.methods == (CHANGE_POINT, SECOND_DERIVATIVE)
    assert cliff.p < 1e-6


def test_two_cliffs_are_two() -> None:
    generator = np.random.default_rng(6)
    x = np.geomspace(512, 32768, 20)
    level = 0.02 * np.where(np.arange(20) >= 6, 2.0, 1.0) * np.where(np.arange(20) >= 14, 1.8, 1.0)
    points = [(float(one), y * np.exp(generator.normal(0, 0.05, 8))) for one, y in zip(x, level, strict=True)]
    assert [cliff.before for cliff in find_cliffs(series_of(points)).cliffs] == [x[6], x[14]]


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.9, 3.0])
def test_a_steep_power_law_is_no_cliff(exponent: float) -> None:
    assert find_cliffs(series_of(points_with([0.01 * 2 ** (k * exponent) for k in range(8)]))).cliffs == ()


def test_a_jump_under_the_least_is_none() -> None:
    levels = [0.01 * (1.15 if k >= 4 else 1) for k in range(8)]
    points = points_with(levels, noise=0.002)
    assert find_cliffs(series_of(points)).cliffs == ()
    assert len(find_cliffs(series_of(points), least_jump=0.1).cliffs) == 1


def test_one_value_a_point_is_judged_by_the_misfit() -> None:
    levels = [0.01 * 1.3**k * (4 if k >= 4 else 1) for k in range(8)]
    (cliff,) = find_cliffs(series_of(points_with(levels, values=1))).cliffs
    assert (cliff.after, cliff.before) == (4096, 8192)


def test_too_few_points_say_so() -> None:
    found = find_cliffs(series_of(points_with([0.01] * 8)[:5]))
    assert found.cliffs == ()
    assert found.too_few is not None
    assert "5 points" in found.too_few
    assert find_cliffs(series_of([])).too_few is not None


def test_values_that_are_all_the_same_are_no_cliff_and_no_error() -> None:
    assert find_cliffs(series_of([(x, np.full(3, 0.5)) for x in LENGTHS])).cliffs == ()
    jump = find_cliffs(series_of([(x, np.full(3, 0.5 if x < 4000 else 1.0)) for x in LENGTHS]))
    assert [cliff.before for cliff in jump.cliffs] == [4096]


def test_the_noise_of_a_statistic() -> None:
    # 1e5 normal values of spread 0.1 in ln: a median's error is 1.2533, a P95's 2.113 times the mean's 0.1 / sqrt(n).
    values = np.exp(np.random.default_rng(7).normal(0, 0.1, 100_000))
    errors = {name: float(series_of([(1, values)], name).error[0]) for name in ("mean", "p50", "p95")}
    usual = 0.1 / np.sqrt(100_000)
    assert errors["mean"] == pytest.approx(usual, rel=0.02)
    assert errors["p50"] == pytest.approx(1.2533 * usual, rel=0.02)
    assert errors["p95"] == pytest.approx(2.113 * usual, rel=0.02)
