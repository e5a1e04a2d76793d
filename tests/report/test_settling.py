"""What is said of a run's beginning, end and middle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.report import words
from cliffwatch.report.settling import Settling
from cliffwatch.report.summary import build
from tests.slo.rows import refused, run_of, served


def rows(factors: list[float], warmup: int = 0, seed: int = 1) -> list[RequestRow]:
    noise = np.random.default_rng(seed).lognormal(0, 0.2, len(factors))
    return [
        served(number, ttft=0.1 * factor * float(part), phase=Phase.WARMUP if number < warmup else Phase.MEASURED)
        for number, (factor, part) in enumerate(zip(factors, noise, strict=True))
    ]


def ttft(folder: Path, made: list[RequestRow]) -> Settling:
    return build(run_of(folder, made).dir).settling[0]


def test_a_slow_start_is_covered_or_not(tmp_path: Path) -> None:
    factors = [4.0] * 100 + [1.0] * 900
    covered = ttft(tmp_path / "covered", rows(factors, warmup=100))
    assert (covered.warmup_cut, covered.measured_cut, covered.covered, covered.steady) == (100, 0, True, True)
    assert covered.warmup_s == 100
    short = ttft(tmp_path / "short", rows(factors, warmup=40))
    assert (short.warmup_cut, short.measured_cut, short.covered) == (100, 60, False)
    assert "60 of them measured: the configured warm-up is too short" in words.settling(short)


def test_nothing_is_cut_by_it(tmp_path: Path) -> None:
    report = build(run_of(tmp_path / "run", rows([4.0] * 100 + [1.0] * 900)).dir)
    assert report.figures[0].n == 1000
    assert report.settling[0].measured_cut == 100


def test_an_end_that_is_quicker(tmp_path: Path) -> None:
    one = ttft(tmp_path / "run", rows([1.0] * 900 + [0.3] * 100))
    assert one.cooldown_cut is not None
    assert 100 <= one.cooldown_cut <= 130
    assert f"leave out the last {one.cooldown_cut}" in words.settling(one)


def test_a_drift_is_told_from_noise(tmp_path: Path) -> None:
    drifting = ttft(tmp_path / "drift", rows(np.linspace(1, 2, 1000).tolist()))
    assert (drifting.steady, drifting.covered) == (False, False)
    assert drifting.change == pytest.approx(1.875 / 1.125 - 1, abs=0.1)
    assert "not steady: +" in words.settling(drifting)
    # A drift of 2 % is certain with little noise, and of no consequence.
    small = ttft(tmp_path / "small", [served(n, ttft=0.1 + n * 2e-6) for n in range(1000)])
    assert small.trend_p is not None
    assert small.trend_p < 0.01
    assert small.steady


def test_too_few_and_none(tmp_path: Path) -> None:
    few = ttft(tmp_path / "few", rows([1.0] * 99))
    assert (few.n, few.warmup_cut, few.steady) == (99, None, None)
    assert words.settling(few) == "too few requests to tell (n 99)"
    none = ttft(tmp_path / "none", [refused(n, Outcome.CONNECT) for n in range(9)])
    assert (none.n, none.covered) == (0, None)


def test_the_cold_start_and_failures_are_no_part_of_it(tmp_path: Path) -> None:
    made = rows([1.0] * 200)
    made += [served(900, ttft=50, phase=Phase.COLD), refused(901, Outcome.TIMEOUT_TOTAL)]
    assert ttft(tmp_path / "run", made).n == 200


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(1.02, 1.1, "1.02–1.1 s"), (0.98, 1.1, "980 ms–1.1 s"), (None, 1, "–"), (None, None, "–")],
)
def test_intervals_of_times(low: float | None, high: float | None, text: str) -> None:
    assert words.seconds_interval(low, high) == text
