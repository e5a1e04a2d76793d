"""Batch sizes: never over the budget, and rarer the longer the prompts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.workload.batches import batch_weights, draw_batches
from cliffwatch.workload.parts import Batch
from tests.workload.statistics import CHI_SQUARE, chi_square

SIZES = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("tokens", "allowed"),
    [
        (1, {1, 2, 4, 8, 16}),
        (1024, {1, 2, 4, 8, 16}),
        (1025, {1, 2, 4, 8}),
        (2048, {1, 2, 4, 8}),
        (4096, {1, 2, 4}),
        (4097, {1, 2}),
        (8192, {1, 2}),
        (8193, {1}),
        (16384, {1}),
        (32768, {1}),
        (1 << 24, {1}),
    ],
)
def test_at_most_sixteen_1k_prompts_go_together_and_a_32k_prompt_alone(tokens: int, allowed: set[int]) -> None:
    drawn = draw_batches(Batch(), np.full(4000, tokens), np.random.default_rng(1))
    assert set(drawn.tolist()) == allowed


def test_the_mix_at_1k_is_that_of_the_rule() -> None:
    drawn = draw_batches(Batch(), np.full(40_000, 1024), np.random.default_rng(2))
    # exp(-(b - 1) / 16) for b = 1, 2, 4, 8, 16: 1, 0.939, 0.829, 0.646, 0.392
    weights = [math.exp(-(size - 1) / 16) for size in SIZES]
    shares = [weight / sum(weights) for weight in weights]
    assert chi_square([int((drawn == size).sum()) for size in SIZES], shares) < CHI_SQUARE[4]


def test_a_falloff_of_zero_takes_every_allowed_size_alike() -> None:
    drawn = draw_batches(Batch(falloff=0), np.full(40_000, 2048), np.random.default_rng(3))
    assert chi_square([int((drawn == size).sum()) for size in SIZES[:4]], [0.25] * 4) < CHI_SQUARE[3]


def test_a_steep_falloff_leaves_the_smallest_size() -> None:
    batch = Batch(sizes=(8, 16), token_budget=1 << 24, falloff=100)
    assert set(draw_batches(batch, np.full(1000, 1 << 20), np.random.default_rng(4)).tolist()) == {8}


def test_weights_of_larger_batches_fall_with_the_length() -> None:
    weights = batch_weights(Batch(), np.arange(16, 32769, 16))
    shares = weights / weights.sum(axis=1, keepdims=True)
    larger = shares[:, 1:].sum(axis=1)
    assert (np.diff(larger) <= 1e-12).all()
    assert (np.diff(shares[:, 4]) <= 1e-12).all()


@given(
    sizes=st.sets(st.integers(2, 64), max_size=6),
    budget=st.integers(1, 1 << 20),
    falloff=st.floats(0, 100),
    tokens=st.lists(st.integers(1, 1 << 24), min_size=1, max_size=50),
    seed=st.integers(0, 1 << 32),
)
def test_no_batch_is_over_the_budget_unless_it_is_one_prompt(
    sizes: set[int], budget: int, falloff: float, tokens: list[int], seed: int
) -> None:
    batch = Batch(sizes=tuple(sizes | {1}), token_budget=budget, falloff=falloff)
    drawn = draw_batches(batch, np.asarray(tokens), np.random.default_rng(seed))
    for length, size in zip(tokens, drawn.tolist(), strict=True):
        assert size in batch.sizes
        assert size <= max(1, budget / length)
