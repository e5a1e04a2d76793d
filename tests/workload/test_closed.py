"""The pace of a closed loop's users."""

from __future__ import annotations

import math

import pytest

from cliffwatch.workload.arrival_parts import ConcurrencyArrivals
from cliffwatch.workload.closed import first_start_ns, next_start_ns, think_s
from tests.workload.statistics import KOLMOGOROV, Z, kolmogorov

S = 1_000_000_000


def test_pacing_counts_from_start_to_start_also_the_first_time() -> None:
    arrivals = ConcurrencyArrivals(kind="concurrency", users=20, pacing=1)
    start = first_start_ns(arrivals, 3)
    for done in range(1, 5):
        after = next_start_ns(arrivals, 1, 3, done, started_ns=start, ended_ns=start + 4 * S // 10)
        assert after - start == S
        start = after
    assert next_start_ns(arrivals, 1, 3, 9, started_ns=0, ended_ns=3 * S) == 3 * S  # an answer longer than the pacing


def test_users_are_spread_over_a_round_on_any_number_of_workers() -> None:
    arrivals = ConcurrencyArrivals(kind="concurrency", users=20, pacing=1)
    starts = [first_start_ns(arrivals, shard + place * 2) for shard in range(2) for place in range(10)]
    per_bin = [sum(start // (S // 10) == bin_ for start in starts) for bin_ in range(10)]
    assert per_bin == [2] * 10
    thinking = ConcurrencyArrivals(kind="concurrency", users=4, think_time=2)
    assert [first_start_ns(thinking, user) for user in range(4)] == [0, S // 2, S, 3 * S // 2]


def test_without_pacing_or_thought_a_user_goes_on_at_once() -> None:
    arrivals = ConcurrencyArrivals(kind="concurrency", users=8)
    assert {first_start_ns(arrivals, user) for user in range(8)} == {0}
    assert next_start_ns(arrivals, 1, 5, 1, started_ns=10, ended_ns=77) == 77


def test_thought_follows_the_end_and_pacing_still_holds() -> None:
    arrivals = ConcurrencyArrivals(kind="concurrency", users=1, think_time=2, pacing=5)
    assert next_start_ns(arrivals, 1, 0, 1, started_ns=0, ended_ns=S) == 5 * S
    assert next_start_ns(arrivals, 1, 0, 1, started_ns=0, ended_ns=4 * S) == 6 * S


def test_exponential_thought_is_exponential_and_repeatable() -> None:
    arrivals = ConcurrencyArrivals(kind="concurrency", users=100, think_time=3, think="exponential")
    drawn = [think_s(arrivals, 7, user, done) for user in range(100) for done in range(100)]
    assert kolmogorov(drawn, lambda wait: -math.expm1(-wait / 3)) < KOLMOGOROV
    assert sum(drawn) / len(drawn) == pytest.approx(3, abs=3 * Z / 100)
    assert think_s(arrivals, 7, 5, 5) == think_s(arrivals, 7, 5, 5) != think_s(arrivals, 8, 5, 5)
