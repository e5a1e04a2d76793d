"""The search: its answers on a queue of known capacity, and what it does where there is none to find."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.capacity.search import State
from tests.capacity.queue import search

SEEDS = range(60)


@pytest.fixture(scope="module")
def searches():
    return [search(seed, rate=75.0, duration_s=800.0, first=10.0) for seed in SEEDS]


def test_the_interval_holds_the_true_capacity(searches):
    # With a true coverage of 95 %, chance gives fewer than 52 of 60 once in 200 runs (binomial); the seeds are fixed.
    held = sum(answer.low <= 75.0 <= answer.high for answer, _ in searches)
    assert held >= 52


def test_it_takes_ten_probes_at_most_and_the_interval_is_narrow(searches):
    assert max(len(probes) for _, probes in searches) <= 10
    assert np.median([answer.width for answer, _ in searches]) <= 0.05
    assert all(answer.width <= 0.05 for answer, _ in searches if answer.state is State.FOUND)


def test_the_estimate_is_not_biased(searches):
    errors = np.array([answer.capacity / 75.0 - 1 for answer, _ in searches])
    assert abs(np.median(errors)) < 0.01
