"""The search: its answers on a queue of known capacity, and what it does where there is none to find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.capacity.search import Answer, Limits, Probe, State, next_step
from cliffwatch.capacity.sequential import Outcome
from tests.capacity.made import invalid, probe
from tests.capacity.queue import search

SEEDS = range(40)


@pytest.fixture(scope="module")
def searches():
    return [search(seed, rate=75.0, duration_s=800.0, first=10.0) for seed in SEEDS]


def test_the_interval_holds_the_true_capacity(searches):
    # With a true coverage of 95 %, chance gives fewer than 34 of 40 once in 290 runs (binomial); the seeds are fixed.
    held = sum(answer.low <= 75.0 <= answer.high for answer, _ in searches)
    assert held >= 34


def test_it_takes_ten_probes_at_most_and_the_interval_is_narrow(searches):
    assert max(len(probes) for _, probes in searches) <= 10
    assert np.median([answer.width for answer, _ in searches]) <= 0.05
    assert all(answer.width <= 0.05 for answer, _ in searches if answer.state is State.FOUND)


def test_the_estimate_is_not_biased(searches):
    errors = np.array([answer.capacity / 75.0 - 1 for answer, _ in searches])
    assert abs(np.median(errors)) < 0.01


def cliff(
    edge: float, *, first: float, whole: bool = False, highest: float | None = None
) -> tuple[Answer, list[Probe]]:
    """A search where everything is good up to the edge and four of ten miss beyond it: nothing to fit."""
    limits = Limits(lowest=1.0, highest=highest, first=first, targets=(0.95,), whole=whole)
    probes: list[Probe] = []
    while (step := next_step(probes, limits)).rate is not None:
        assert not whole or step.rate.is_integer()
        probes.append(probe(step.rate, (1000, 0 if step.rate <= edge else 400)))
    return step.answer, probes


@pytest.mark.parametrize("first", [10.0, 50.0, 300.0])
@pytest.mark.parametrize("edge", [37.0, 100.0, 128.3])
def test_a_cliff_is_halved_to_the_width_asked_for(edge, first):
    answer, probes = cliff(edge, first=first)
    assert answer.low <= edge < answer.high
    assert len(probes) <= 10
    assert answer.state is State.FOUND
    assert not answer.fitted
    assert answer.width <= 0.05
    assert answer.binding == 0


def test_users_are_whole_and_neighbours_end_the_search():
    answer, _ = cliff(5.0, first=4.0, whole=True)
    assert (answer.state, answer.low, answer.high) == (State.FOUND, 5.0, 6.0)


def test_what_holds_at_the_highest_rate_is_at_least_that():
    answer, probes = cliff(500.0, first=10.0, highest=100.0)
    assert (answer.state, answer.low, answer.high, answer.capacity) == (State.AT_LEAST, 100.0, None, None)
    assert [one.rate for one in probes] == [10.0, 40.0, 100.0]


def test_what_fails_at_the_lowest_rate_is_said():
    answer, _ = cliff(0.5, first=10.0)
    assert (answer.state, answer.low, answer.high) == (State.TOO_HIGH, None, 1.0)


def test_probes_at_the_highest_rate_are_taken_together():
    limits = Limits(lowest=1.0, highest=50.0, first=50.0, targets=(0.99,))
    one = probe(50.0, (400, 0), targets=(0.99,))
    assert one.outcome is Outcome.UNDECIDED
    assert next_step([one], limits).rate == 50.0
    assert next_step([one, one], limits).answer.state is State.AT_LEAST


def test_an_overload_says_by_its_throughput_where_to_look():
    limits = Limits(lowest=1.0, highest=None, first=400.0, targets=(0.95,))
    step = next_step([probe(400.0, (1000, 1000), growing=True, answers_per_s=100.0)], limits)
    assert step.rate == pytest.approx(80.0)


def test_the_objective_that_is_missed_first_binds():
    limits = Limits(lowest=1.0, highest=None, first=10.0, targets=(0.95, 0.99))
    misses = {90.0: (250, 2), 100.0: (500, 20), 110.0: (1000, 80), 120.0: (2000, 400)}
    probes = [probe(rate, *((10_000, bad) for bad in both), targets=(0.95, 0.99)) for rate, both in misses.items()]
    answer = next_step(probes, limits).answer
    assert answer.fitted
    assert answer.binding == 0
    assert answer.low < 100.0 < answer.high


# The load generator's limit is never taken for the server's.


def test_an_invalid_probe_is_no_evidence_and_a_lower_rate_is_tried():
    limits = Limits(lowest=1.0, highest=None, first=10.0, targets=(0.95,))
    probes = [probe(10.0, (1000, 0)), probe(40.0, (1000, 0)), invalid(160.0)]
    step = next_step(probes, limits)
    assert (step.answer.low, step.answer.high) == (40.0, None)
    assert step.rate == pytest.approx(80.0)
    assert next_step([*probes, probe(80.0, (1000, 900))], limits).rate < 80.0  # the server's edge is below


def test_a_generator_that_fails_twice_beside_what_it_can_do_ends_the_search():
    limits = Limits(lowest=1.0, highest=None, first=10.0, targets=(0.95,))
    probes = [probe(100.0, (1000, 0)), invalid(120.0)]
    assert next_step(probes, limits).rate == 120.0
    answer = next_step([*probes, invalid(120.0)], limits).answer
    assert (answer.state, answer.low, answer.high) == (State.GENERATOR, 100.0, None)


def test_a_generator_that_never_keeps_up_ends_with_nothing():
    limits = Limits(lowest=10.0, highest=None, first=40.0, targets=(0.95,))
    probes: list[Probe] = []
    while (step := next_step(probes, limits)).rate is not None:
        probes.append(invalid(step.rate))
    assert step.answer.state is State.NOTHING
    assert [one.rate for one in probes] == [40.0, 40.0, 10.0, 10.0]


@given(
    st.lists(
        st.tuples(st.floats(0.1, 1e5), st.integers(0, 5000), st.floats(0, 1), st.booleans(), st.booleans()), max_size=12
    )
)
def test_whatever_was_seen_the_next_rate_is_within_the_limits(seen):
    limits = Limits(lowest=0.5, highest=1e4, first=10.0, targets=(0.95,))
    probes = [
        invalid(rate) if refused else probe(rate, (n, int(n * share)), growing=growing)
        for rate, n, share, growing, refused in seen
    ]
    step = next_step(probes, limits)
    assert step.rate is None or 0.5 <= step.rate <= 1e4
    assert (step.rate is None) == (step.answer.state is not State.SEARCHING)
    if step.answer.fitted:
        assert step.answer.low <= step.answer.capacity <= step.answer.high
