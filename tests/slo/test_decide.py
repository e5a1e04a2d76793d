"""Met, missed, too few data: the table of docs/judgement.md, and how often chance alone calls a miss."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.slo.decide import MIN_BAD, decide
from cliffwatch.slo.judgement import Status
from cliffwatch.stats.wilson import wilson


def decided(good: int, n: int, target: float, needed: int) -> tuple[Status, bool]:
    low, high = wilson(good, n) if n else (None, None)
    return decide(good=good, n=n, target=target, low=low, high=high, needed=needed)


@pytest.mark.parametrize(
    ("good", "n", "target", "needed", "status", "confident"),
    [
        (0, 0, 0.95, 200, Status.TOO_FEW_DATA, False),
        (0, 1, 0.95, 200, Status.TOO_FEW_DATA, False),  # Wilson 0 to 0.79 excludes 95 %, from one request
        (16, 17, 0.99, 1000, Status.TOO_FEW_DATA, False),  # up to 0.9895, from one failure
        (0, 3, 0.95, 200, Status.MISSED, True),
        (72, 72, 0.95, 200, Status.TOO_FEW_DATA, False),  # low = 72 / (72 + 3.8415) = 0.9493
        (73, 73, 0.95, 200, Status.MET, True),  # 73 / 76.8415 = 0.9500
        (188, 199, 0.95, 200, Status.TOO_FEW_DATA, False),
        (190, 200, 0.95, 200, Status.MET, False),  # exactly on the target
        (189, 200, 0.95, 200, Status.MISSED, False),
        (170, 200, 0.95, 200, Status.MISSED, True),
        (0, 20, 0.999, 10_000, Status.MISSED, True),
        (949, 1000, 0.95, 200, Status.MISSED, False),
        (10_000, 10_000, 0.999, 10_000, Status.MET, True),
    ],
)
def test_status(good: int, n: int, target: float, needed: int, status: Status, confident: bool) -> None:
    assert decided(good, n, target, needed) == (status, confident)


@given(n=st.integers(1, 5000), share=st.floats(0, 1), target=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]))
def test_status_agrees_with_the_exact_share(n: int, share: float, target: float) -> None:
    good = round(n * share)
    status, confident = decided(good, n, target, needed=math.ceil(10 / (1 - target)))
    if status is Status.MET:
        assert Fraction(good, n) >= Fraction(target) or math.isclose(good / n, target)
    if status is Status.MISSED:
        assert Fraction(good, n) < Fraction(target)
    assert not (status is Status.TOO_FEW_DATA and confident)


@pytest.mark.parametrize(("target", "needed"), [(0.9, 100), (0.95, 200), (0.99, 1000), (0.999, 10_000)])
def test_chance_of_calling_a_miss_while_on_target(target: float, needed: int) -> None:
    """Exact binomial sums: rule 1 says missed by chance under 8.5 % at any n, and under 4 % from `needed` on."""
    for n in range(3, needed + 1, max(1, needed // 300)):
        bad = next(bad for bad in range(MIN_BAD, n + 2) if bad > n or wilson(n - bad, n)[1] < target)
        at_most = math.fsum(math.comb(n, one) * (1 - target) ** one * target ** (n - one) for one in range(bad))
        assert 1 - at_most < (0.04 if n == needed else 0.085), (n, bad)
