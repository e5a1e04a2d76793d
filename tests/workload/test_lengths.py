"""Lengths: each distribution against its own arithmetic."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.workload.lengths import LENGTHS
from cliffwatch.workload.parts import (
    EmpiricalLength,
    FixedLength,
    LogNormalLength,
    LogUniformLength,
    UniformLength,
)
from tests.workload.statistics import CHI_SQUARE, KOLMOGOROV, Z, binomial_z, chi_square, kolmogorov

N = 40_000


def draw(spec: object, n: int = N, seed: int = 5) -> np.ndarray:
    return LENGTHS[spec.kind](spec, np.random.default_rng(seed), n)  # type: ignore[attr-defined]


def test_log_uniform_has_as_many_in_each_doubling() -> None:
    drawn = draw(LogUniformLength(kind="loguniform", min=1024, max=32768))
    counts = [int(((drawn >= low) & (drawn < 2 * low)).sum()) for low in (1024, 2048, 4096, 8192)]
    counts.append(N - sum(counts))  # 16384 to 32768, the last one included
    whole = math.log(32769 / 1024)
    shares = [math.log(2) / whole] * 4
    assert chi_square(counts, [*shares, 1 - sum(shares)]) < CHI_SQUARE[4]
    # distribution of whole numbers: P(L <= k) = log((k + 1) / min) / log((max + 1) / min), at its own steps
    distance = kolmogorov((drawn + np.random.default_rng(6).random(N)).tolist(), lambda x: math.log(x / 1024) / whole)
    assert distance < KOLMOGOROV + 0.02  # spread evenly over a step of 1 in 1024, not by the logarithm


def test_log_uniform_over_few_values_is_exact() -> None:
    drawn = draw(LogUniformLength(kind="loguniform", min=1, max=3))
    shares = [math.log(2, 4), math.log(1.5, 4), math.log(4 / 3, 4)]
    assert chi_square([int((drawn == value).sum()) for value in (1, 2, 3)], shares) < CHI_SQUARE[2]


def test_uniform_has_every_value_alike_and_both_ends() -> None:
    drawn = draw(UniformLength(kind="uniform", min=7, max=12))
    assert chi_square([int((drawn == value).sum()) for value in range(7, 13)], [1 / 6] * 6) < CHI_SQUARE[5]


def test_lognormal_keeps_its_median_and_clamps_the_tails() -> None:
    drawn = draw(LogNormalLength(kind="lognormal", median=128, sigma=0.8, min=8, max=512))
    normal = NormalDist(sigma=0.8)
    assert abs(binomial_z(int((drawn <= 128).sum()), N, normal.cdf(math.log(128.5 / 128)))) < Z
    assert abs(binomial_z(int((drawn == 512).sum()), N, 1 - normal.cdf(math.log(511.5 / 128)))) < Z
    assert abs(binomial_z(int((drawn <= 57).sum()), N, normal.cdf(math.log(57.5 / 128)))) < Z
    assert abs(binomial_z(int((drawn == 8).sum()), N, normal.cdf(math.log(8.5 / 128)))) < Z


def test_empirical_takes_values_by_their_weights() -> None:
    drawn = draw(EmpiricalLength(kind="empirical", values=(512, 64, 4096), weights=(1, 2, 7)))
    assert chi_square([int((drawn == value).sum()) for value in (512, 64, 4096)], [0.1, 0.2, 0.7]) < CHI_SQUARE[2]
    alike = draw(EmpiricalLength(kind="empirical", values=(5, 6)))
    assert chi_square([int((alike == value).sum()) for value in (5, 6)], [0.5, 0.5]) < CHI_SQUARE[1]


def test_a_weight_of_zero_is_never_drawn() -> None:
    drawn = draw(EmpiricalLength(kind="empirical", values=(1, 2, 3), weights=(0, 1, 0)))
    assert set(drawn.tolist()) == {2}


def test_fixed_is_fixed() -> None:
    assert set(draw(FixedLength(kind="fixed", value=77)).tolist()) == {77}


@given(
    kind=st.sampled_from([UniformLength, LogUniformLength, LogNormalLength]),
    low=st.integers(1, 1 << 24),
    spread=st.integers(0, 1 << 24),
    sigma=st.floats(0.01, 5),
    seed=st.integers(0, 1 << 32),
)
def test_every_length_is_within_its_bounds(kind: type, low: int, spread: int, sigma: float, seed: int) -> None:
    high = min(low + spread, 1 << 24)
    extra = {"median": (low + high) // 2, "sigma": sigma} if kind is LogNormalLength else {}
    name = kind.model_fields["kind"].annotation.__args__[0]  # type: ignore[attr-defined]
    spec = kind(kind=name, min=low, max=high, **extra)
    drawn = draw(spec, 500, seed)
    assert spec.bounds == (low, high)
    assert low <= drawn.min() <= drawn.max() <= high


@pytest.mark.parametrize(
    "spec",
    [
        LogUniformLength(kind="loguniform", min=1024, max=32768),
        LogNormalLength(kind="lognormal", median=128, sigma=0.8, min=8, max=512),
        EmpiricalLength(kind="empirical", values=(1, 2, 3)),
        UniformLength(kind="uniform", min=1, max=9),
    ],
)
def test_cutting_a_stream_into_blocks_changes_nothing(spec: object) -> None:
    rng = np.random.default_rng(5)
    parts = [LENGTHS[spec.kind](spec, rng, size) for size in (1, 99, 400, 500)]  # type: ignore[attr-defined]
    assert np.concatenate(parts).tolist() == draw(spec, 1000).tolist()
