"""What is made of a probe's requests: the cut, the counts, their worth, and the backlog."""

from __future__ import annotations

import numpy as np
import pytest

from cliffwatch.capacity.evidence import Series, cooldown_s, pool, weigh
from tests.capacity.queue import customers, series


def steady(n: int = 2000, took_s: float = 0.5, seed: int = 1) -> Series:
    rng = np.random.default_rng(seed)
    due = np.cumsum(rng.exponential(0.01, n))
    return series(due, rng.gamma(4, took_s / 4, n), 1.0)


def test_counts_are_of_the_requests_after_the_cut_up_to_the_end():
    found = weigh(steady(), until_s=15.0)
    counted = np.count_nonzero(steady().due_s <= 15.0) - found.cut
    assert found.counts[0].n == counted == found.goodput.n
    assert found.end_s == 15.0
    assert found.arrivals_per_s == pytest.approx(100, rel=0.1)
    assert found.pending == 0
    assert not found.growing


def test_a_slow_start_is_cut_off():
    rng = np.random.default_rng(2)
    took = rng.gamma(4, 0.1, 2000) * np.where(np.arange(2000) < 300, 8.0, 1.0)
    found = weigh(series(np.arange(2000) * 0.01, took, 1.0), until_s=20.0)
    assert 290 <= found.cut <= 400
    assert found.settled


def test_the_end_that_is_left_out_is_as_long_as_requests_take():
    assert cooldown_s(steady(took_s=0.5)) == pytest.approx(np.quantile(steady().ended_s - steady().due_s, 0.95))
    slow = steady(took_s=500.0)
    assert cooldown_s(slow) == pytest.approx((slow.due_s[-1] - slow.due_s[0]) / 4)


def test_requests_without_an_end_are_pending_and_no_miss():
    found = weigh(series(np.arange(1000) * 0.01, np.full(1000, 0.5), 1.0, now_s=8.0), until_s=8.0)
    assert 45 <= found.pending <= 51
    assert found.counts[0].bad == 0
    assert found.counts[0].n + found.pending + found.cut == 801


def test_alike_neighbours_are_worth_less():
    rng = np.random.default_rng(3)
    due = np.arange(4000) * 0.01
    alone = rng.random(4000) < 0.1
    clustered = np.repeat(rng.random(40) < 0.1, 100)
    worth = [weigh(series(due, np.where(bad, 2.0, 0.1), 1.0), until_s=40.0) for bad in (alone, clustered)]
    assert worth[0].counts[0].inflation < 3
    assert worth[1].counts[0].inflation > 20


@pytest.mark.parametrize(("load", "grows"), [(0.5, False), (0.8, False), (1.1, True), (2.0, True)])
def test_the_backlog_grows_past_the_server_s_rate_only(load, grows):
    # a steady queue would be called growing in one run of 1,000
    for seed in range(10):
        due, took = customers(np.random.default_rng(seed), 100 * load, 100.0, 100.0)
        seen = series(due, took, 1.0, now_s=100.0)
        assert weigh(seen, until_s=95.0).growing is grows


def test_nothing_to_weigh_is_no_evidence():
    assert weigh(steady(), until_s=-1.0) is None
    assert weigh(steady(1), until_s=100.0) is None


def test_pooled_probes_add_up():
    one, other = weigh(steady(seed=4), until_s=15.0), weigh(steady(seed=5), until_s=18.0)
    both = pool(one, other)
    assert both.counts[0].n == one.counts[0].n + other.counts[0].n
    assert both.seconds == pytest.approx(one.seconds + other.seconds)
    assert min(one.arrivals_per_s, other.arrivals_per_s) <= both.arrivals_per_s
