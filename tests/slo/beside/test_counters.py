"""Growth of a counter, worked out by hand."""

from __future__ import annotations

import pytest

from cliffwatch.slo.beside.counters import Growth, growth

SAMPLES = [(0.0, 5.0), (10.0, 7.0), (20.0, 9.0), (30.0, 14.0), (40.0, 15.0)]


def test_it_is_taken_from_the_last_sample_before_to_the_first_after() -> None:
    assert growth(SAMPLES, 12.0, 25.0) == Growth(7.0, 10.0, 30.0, 0)  # 14 - 7


def test_a_sample_at_an_end_is_that_end() -> None:
    assert growth(SAMPLES, 10.0, 30.0) == Growth(7.0, 10.0, 30.0, 0)


def test_between_two_samples_they_are_both_used() -> None:
    assert growth(SAMPLES, 12.0, 13.0) == Growth(2.0, 10.0, 20.0, 0)


def test_where_samples_are_lacking_at_an_end_it_says_how_far_it_goes() -> None:
    assert growth(SAMPLES, -9.0, 60.0) == Growth(10.0, 0.0, 40.0, 0)


def test_a_restart_counts_from_zero() -> None:
    # 3 until the restart, 4 seen after it, then 6 more
    assert growth([(0, 10), (10, 13), (20, 4), (30, 10)], 5, 25) == Growth(13, 0, 30, 1)


@pytest.mark.parametrize("points", [[], [(5.0, 1.0)], [(1.0, 1.0), (2.0, 2.0)], [(98.0, 1.0), (99.0, 2.0)]])
def test_without_two_samples_about_the_time_nothing_is_known(points: list[tuple[float, float]]) -> None:
    assert growth(points, 4.0, 50.0) is None
