"""Wilson interval against its defining equation and against published values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats import wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (95, 100, 0.8882, 0.9785),
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, Table I, method 3
        (15, 148, 0.0624, 0.1605),  # the same
        (0, 20, 0.0, 0.1611),  # the same
        (1, 29, 0.0061, 0.1718),  # the same
        (29, 29, 0.8830, 1.0),  # 1 / (1 + z^2 / n) = 1 / (1 + 3.8415 / 29)
    ],
)
def test_known_values(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_nothing_is_known_of_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("n", [5e-324, 1e-300, 1e-160, 1e300])
def test_a_count_of_any_size_has_bounds(n: float) -> None:
    """As good as nothing is known of next to no events, and the share itself of endless ones."""
    low, high = wilson(n / 2, n)
    assert (low, high) == ((0.5, 0.5) if n > 1 else (pytest.approx(0, abs=1e-9), pytest.approx(1, abs=1e-9)))


@given(st.integers(1, 10**7), st.data())
def test_bounds_solve_the_score_equation(n: int, data: st.DataObject) -> None:
    """Each bound p is where |share - p| = z sqrt(p (1 - p) / n), z = 1.959964: the definition, not the closed form."""
    successes = data.draw(st.integers(0, n))
    share = successes / n
    low, high = wilson(successes, n)
    assert 0 <= low <= share <= high <= 1
    for bound in (low, high):
        gap = 1.9599639845400545 * math.sqrt(bound * (1 - bound) / n)
        assert abs(share - bound) == pytest.approx(gap, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("successes", "n", "confidence"), [(-1, 5, 0.95), (6, 5, 0.95), (1, 5, 1.0), (1, 5, 0.0)])
def test_bad_input(successes: int, n: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must be between"):
        wilson(successes, n, confidence)
