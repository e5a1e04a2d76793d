"""Arrival times: the asked rate without drift, and Poisson that is Poisson."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from cliffwatch.workload.schedule import plan_blocks
from cliffwatch.workload.spec import Workload
from tests.workload.statistics import KOLMOGOROV, Z, dispersion_z, kolmogorov, lag_z


def times_ns(limit: int = 1 << 62, **fields: object) -> np.ndarray:
    workload = Workload.model_validate({"input_tokens": {"kind": "fixed", "value": 1}, **fields})
    times = np.concatenate([block.intended_ns for block in islice(plan_blocks(workload), 2000)])
    return times[:limit]


def test_constant_arrivals_do_not_drift_in_an_hour() -> None:
    times = times_ns(duration="1h", arrivals={"kind": "constant", "rate": 183.3})
    assert len(times) == 659_880  # 183.3 * 3600; the next one would be at 1 h sharp
    for k in (0, 1, 2, 12_345, 329_940, 659_878, 659_879):
        assert abs(int(times[k]) - Fraction(k * 10**9) / Fraction("183.3")) <= 1
    assert set(np.diff(times).tolist()) <= {5_455_537, 5_455_538}  # 1e9 / 183.3 = 5,455,537.37


@pytest.mark.parametrize(("rate", "seconds", "count"), [(2, 10, 20), (0.5, 10, 5), (3, 1, 3), (1, 0.5, 1), (4, 0.1, 1)])
def test_constant_arrivals_fill_the_half_open_duration(rate: float, seconds: float, count: int) -> None:
    times = times_ns(duration=seconds, arrivals={"kind": "constant", "rate": rate}, cold_start={"requests": 0})
    assert times.tolist() == [round(k * 1e9 / rate) for k in range(count)]


def test_whichever_of_requests_and_duration_comes_first_ends_the_load() -> None:
    arrivals = {"kind": "constant", "rate": 10}
    assert len(times_ns(duration="10s", requests=7, arrivals=arrivals)) == 7
    assert len(times_ns(duration="1s", requests=700, arrivals=arrivals)) == 10
    assert len(times_ns(requests=4096, arrivals=arrivals)) == 4096
    assert len(times_ns(requests=4097, arrivals=arrivals)) == 4097


@pytest.mark.parametrize(("seed", "rate"), [(1, 50.0), (2, 200.0), (3, 0.5)])
def test_poisson_gaps_are_exponential_and_independent(seed: int, rate: float) -> None:
    times = times_ns(seed=seed, requests=20_000, arrivals={"kind": "poisson", "rate": rate})
    gaps = np.diff(times, prepend=0) / 1e9
    assert kolmogorov(gaps.tolist(), lambda gap: -math.expm1(-gap * rate)) < KOLMOGOROV
    assert abs((gaps.mean() * rate - 1) * math.sqrt(len(gaps))) < Z  # mean 1 / rate, within Z / sqrt(n)
    assert abs(gaps.std(ddof=1) / gaps.mean() - 1) < Z / math.sqrt(len(gaps))  # the CV's own deviation is 1 / sqrt(n)
    assert abs(lag_z(gaps.tolist())) < Z


@pytest.mark.parametrize("bin_s", [0.1, 1.0, 10.0])
def test_poisson_counts_have_a_dispersion_of_one_at_every_scale(bin_s: float) -> None:
    times = times_ns(seed=4, duration="1h", arrivals={"kind": "poisson", "rate": 20})
    counts = np.bincount((times / (bin_s * 1e9)).astype(int), minlength=int(3600 / bin_s))
    assert abs(dispersion_z(counts.tolist())) < Z
    assert abs(len(times) - 72_000) < Z * math.sqrt(72_000)


def test_poisson_of_two_seeds_are_not_alike() -> None:
    arrivals = {"kind": "poisson", "rate": 100}
    first, second = (times_ns(seed=seed, requests=5000, arrivals=arrivals) for seed in (1, 2))
    correlation = np.corrcoef(np.diff(first), np.diff(second))[0, 1]
    assert abs(correlation * math.sqrt(5000)) < Z


def test_a_closed_loop_has_no_times_and_no_end_but_its_count() -> None:
    arrivals = {"kind": "concurrency", "users": 3}
    assert times_ns(requests=5000, arrivals=arrivals).tolist() == [0] * 5000
    assert len(times_ns(limit=100_000, duration="1s", arrivals=arrivals)) == 100_000
