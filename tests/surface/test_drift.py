"""Why knees move: the model is found where the runs tell it, and the doubt is said where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.surface.drift import KneeOfRun, fit_drift, shift

SURE = 0.03  # standard error of ln(place)
HALF = 1.959964 * SURE


def knee(at: float, rho: float, g: float) -> KneeOfRun:
    return KneeOfRun(at, at * np.exp(-HALF), at * np.exp(HALF), rho, g)


def runs(generator: np.random.Generator, a: float, b: float, shares: tuple[float, ...]) -> list[KneeOfRun]:
    return [
        knee(64 * (1 - a * rho) ** (b * g) * np.exp(generator.normal(0, SURE)), rho, g)
        for rho in shares
        for g in (0.0, 0.5, 1.0)
    ]


def test_the_model_is_found_within_its_intervals() -> None:
    # 25 times three intervals of 95 %: all but 3.75 hold; more than 10 misses have a chance under one of 300.
    generator = np.random.default_rng(31)
    misses = 0
    for _ in range(25):
        found = fit_drift(runs(generator, 0.7, 1.5, (0, 0.2, 0.4, 0.6, 0.8)))
        assert found.unknown is None
        assert found.p_effect is not None
        assert found.p_effect < 1e-4
        truth = {"x0": 64, "a": 0.7, "b": 1.5}
        misses += sum(not low <= truth[name] <= high for name, (low, high) in found.intervals.items())
    assert misses <= 10


def test_knees_that_follow_nothing_seldom_seem_to() -> None:
    # At 5 % of 30 tries 1.5 are expected; more than 6 come about once in 1,500 (binomial).
    generator = np.random.default_rng(32)
    effects = [fit_drift(runs(generator, 0.0, 1.0, (0, 0.3, 0.6, 0.9))).p_effect for _ in range(30)]
    assert sum(p is not None and p < 0.05 for p in effects) <= 6


def test_a_model_that_is_wrong_says_so() -> None:
    moved = [knee(64 * (3 if number % 2 else 1), rho, 1.0) for number, rho in enumerate((0, 0.1, 0.2, 0.3, 0.4, 0.5))]
    found = fit_drift(moved)
    assert found.p_fit is not None
    assert found.p_fit < 1e-6


@pytest.mark.parametrize(
    ("knees", "said"),
    [
        ([knee(64, 0, 1), knee(32, 0.5, 1), knee(40, 0.5, 0.5)], "at least 4"),
        ([knee(64, rho, 0) for rho in (0, 0.3, 0.6, 0.9)], "no two runs differ"),
        ([knee(64 * (1 - 0.5 * rho), rho, 1) for rho in (0, 0.4, 0, 0.4, 0.4)], "cannot be told apart"),
        ([KneeOfRun(64, 64, 64, rho, 1) for rho in (0, 0.3, 0.6, 0.9)], "without an interval"),
    ],
)
def test_what_runs_cannot_tell_is_said(knees: list[KneeOfRun], said: str) -> None:
    found = fit_drift(knees)
    assert found.a is None
    assert found.b is None
    assert found.unknown is not None
    assert said in found.unknown


def test_a_shift_with_its_interval() -> None:
    # ln 2 with a standard error of 0.03 sqrt 2: 2 x e^(+-1.96 x 0.0424) = 1.840 to 2.174.
    moved = shift(knee(32, 0, 1), knee(64, 0, 1))
    assert (moved.ratio, moved.low, moved.high) == pytest.approx((2, 1.840, 2.174), abs=0.001)
    assert moved.shown
    assert not shift(knee(32, 0, 1), knee(33, 0, 1)).shown
