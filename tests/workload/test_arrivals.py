"""Arrival times: the asked rate without drift, and Poisson that is Poisson."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from cliffwatch.workload.curves import CURVES
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


@pytest.mark.parametrize("burstiness", [0.25, 0.5, 1.0, 4.0, 25.0])
def test_gamma_keeps_the_rate_and_has_the_cv_of_its_burstiness(burstiness: float) -> None:
    """Rate within 1 %, CV within 2 %: with 200,000 gaps both bounds are over 4 deviations of a right generator away
    (the least: a CV of 2 has a deviation of 0.5 %)."""
    times = times_ns(seed=11, requests=200_000, arrivals={"kind": "gamma", "rate": 200, "burstiness": burstiness})
    gaps = np.diff(times)
    assert 200_000 / times[-1] * 1e9 == pytest.approx(200, rel=0.01)
    assert gaps.std(ddof=1) / gaps.mean() == pytest.approx(1 / math.sqrt(burstiness), rel=0.02)
    assert abs(lag_z(gaps.tolist())) < Z


def test_gamma_of_burstiness_one_is_poisson() -> None:
    times = times_ns(seed=12, requests=20_000, arrivals={"kind": "gamma", "rate": 50, "burstiness": 1})
    gaps = np.diff(times, prepend=0) / 1e9
    assert kolmogorov(gaps.tolist(), lambda gap: -math.expm1(-gap * 50)) < KOLMOGOROV


def test_gamma_is_erlang_at_two() -> None:
    times = times_ns(seed=13, requests=20_000, arrivals={"kind": "gamma", "rate": 10, "burstiness": 2})
    gaps = np.diff(times) / 1e9
    # sum of two exponentials of rate 20: 1 - exp(-x) (1 + x), x = 20 t
    assert kolmogorov(gaps.tolist(), lambda gap: 1 - math.exp(-20 * gap) * (1 + 20 * gap)) < KOLMOGOROV


@pytest.mark.parametrize("burstiness", [0.1, 10])
def test_gamma_has_its_rate_from_the_first_moment(burstiness: float) -> None:
    """Over 2,000 seeds the first 2 s have the mean of any 2 s; a process that began with an arrival would miss it by
    (CV^2 - 1) / 2, which is 4.5 or -0.45 of 8."""
    arrivals = {"kind": "gamma", "rate": 4, "burstiness": burstiness}
    lots = (Workload.model_validate({"seed": seed, "duration": 2, "arrivals": arrivals}) for seed in range(2000))
    counts = [sum(len(block) for block in plan_blocks(lot, size=64)) for lot in lots]
    assert abs(np.mean(counts) - 8) < Z * np.std(counts) / math.sqrt(2000)


MODULATED = [
    {"kind": "ramp", "start_rate": 5, "end_rate": 50, "over": 600},
    {"kind": "ramp", "end_rate": 40, "over": 900},
    {"kind": "ramp", "shape": "geometric", "start_rate": 1, "end_rate": 100, "over": 600},
    {"kind": "ramp", "shape": "steps", "stages": 6, "end_rate": 30, "over": 900},
    {"kind": "diurnal", "low": 2, "high": 40, "period": 300},
    {"kind": "bursts", "on": 10, "off": 20, "on_rate": 60},
    {"kind": "curve", "points": [{"at": 0, "rate": 9}, {"at": 300, "rate": 30}, {"at": 400, "rate": 0}], "repeat": 600},
]


@pytest.mark.parametrize("arrivals", MODULATED, ids=lambda arrivals: f"{arrivals['kind']}-{arrivals.get('shape', '')}")
def test_a_changing_rate_is_poisson_on_its_own_clock(arrivals: dict[str, object]) -> None:
    """Integrals of the rate between arrivals are exponential of mean 1 and independent, and counts over equal parts of
    the integral disperse as Poisson's: all that there is to an inhomogeneous Poisson process."""
    workload = Workload.model_validate({"seed": 21, "duration": 900, "arrivals": arrivals})
    times = times_ns(seed=21, duration=900, arrivals=arrivals)
    due = CURVES[str(arrivals["kind"])](workload.arrivals).expected(times / 1e9)
    rescaled = np.diff(due, prepend=0)
    n = len(rescaled)
    assert kolmogorov(rescaled.tolist(), lambda gap: -math.expm1(-gap)) < KOLMOGOROV
    assert abs(rescaled.mean() - 1) < Z / math.sqrt(n)
    assert abs(rescaled.std(ddof=1) / rescaled.mean() - 1) < Z / math.sqrt(n)
    assert abs(lag_z(rescaled.tolist())) < Z
    assert abs(dispersion_z(np.bincount((due / 10).astype(int))[:-1].tolist())) < Z
    expected = workload.expected_requests(900)
    assert expected is not None
    assert abs(n - expected) < Z * math.sqrt(expected)


def test_the_rate_of_each_stage_is_the_asked_one() -> None:
    """Within Z deviations of Poisson counts: 0.5 to 3 a second for 4,000 s each."""
    arrivals = {"kind": "ramp", "shape": "steps", "end_rate": 3, "stages": 6, "over": 24_000}
    times = times_ns(seed=5, duration=24_000, arrivals=arrivals)
    counts = np.bincount((times / 4e12).astype(int), minlength=6)
    for count, rate in zip(counts.tolist(), (0.5, 1.0, 1.5, 2.0, 2.5, 3.0), strict=True):
        assert abs(count - 4000 * rate) < Z * math.sqrt(4000 * rate)


def test_evenly_spaced_arrivals_of_a_changing_rate_need_no_chance() -> None:
    ramp = {"kind": "ramp", "shape": "steps", "end_rate": 3, "stages": 3, "over": 6, "spacing": "even"}
    assert (times_ns(duration=7, arrivals=ramp) / 1e9).tolist() == pytest.approx(
        [0, 1, 2, 2.5, 3, 3.5, *(4 + third / 3 for third in range(9))]
    )
    bursts = {"kind": "bursts", "on": 1, "off": 9, "on_rate": 2, "spacing": "even"}
    assert (times_ns(requests=6, arrivals=bursts) / 1e9).tolist() == [0, 0.5, 10, 10.5, 20, 20.5]


def test_burstiness_of_a_changing_rate_is_that_of_its_own_clock() -> None:
    arrivals = {"kind": "diurnal", "low": 10, "high": 100, "period": 600, "burstiness": 0.25}
    workload = Workload.model_validate({"seed": 3, "duration": 3600, "arrivals": arrivals})
    times = times_ns(seed=3, duration=3600, arrivals=arrivals)
    rescaled = np.diff(CURVES["diurnal"](workload.arrivals).expected(times / 1e9))
    assert rescaled.mean() == pytest.approx(1, rel=0.02)  # 198,000 gaps of CV 2: 4.4 deviations
    assert rescaled.std(ddof=1) / rescaled.mean() == pytest.approx(2, rel=0.02)


def test_a_load_ends_where_its_rate_does() -> None:
    arrivals = {"kind": "curve", "points": [{"at": 0, "rate": 20}, {"at": 10, "rate": 0}]}
    times = times_ns(duration="1h", arrivals=arrivals)
    assert times[-1] < 10e9
    assert abs(len(times) - 100) < Z * 10
    even = times_ns(duration="1h", arrivals={**arrivals, "spacing": "even"})
    assert len(even) == 100
