"""Counts between edges: exact at each edge, and the sum of parts is the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats.histogram import Histogram

edges = st.lists(st.floats(0.001, 100), min_size=1, max_size=6, unique=True).map(sorted)
values = st.lists(st.one_of(st.floats(0, 200), st.sampled_from([0.5, 1.0, 2.0])), max_size=40)


def filled(own: list[float], numbers: list[float]) -> Histogram:
    histogram = Histogram(own)
    for number in numbers:
        histogram.observe(number)
    return histogram


@given(edges, values)
def test_each_edge_has_the_number_of_values_up_to_it(own: list[float], numbers: list[float]) -> None:
    numbers += own  # a value on an edge is within it
    expected = [sum(number <= edge for number in numbers) for edge in own]
    histogram = filled(own, numbers)
    assert histogram.running() == [*expected, len(numbers)]
    assert histogram.n == len(numbers)
    assert histogram.total == pytest.approx(sum(numbers))


def test_what_is_known_to_be_greater_is_beyond_the_edge_it_reached() -> None:
    histogram = Histogram([1.0, 2.0])
    for value in (0.5, 1.0, 2.0, 9.0):
        histogram.observe_above(value)
    assert histogram.running() == [1, 2, 4]


@given(edges, st.lists(values, max_size=4))
def test_adding_gives_the_histogram_of_everything(own: list[float], parts: list[list[float]]) -> None:
    whole = Histogram(own)
    for part in parts:
        whole.add(filled(own, part).buckets())
    assert whole.running() == filled(own, [number for part in parts for number in part]).running()


@pytest.mark.parametrize("bad", [[(3, 1)], [(-1, 1)], [(0, -1)]])
def test_refuses_buckets_of_other_edges(bad: list[tuple[int, int]]) -> None:
    histogram = Histogram([1.0, 2.0])
    with pytest.raises(ValueError, match="edges"):
        histogram.add((0.0, bad))
    assert histogram.n == 0


@pytest.mark.parametrize("bad", [[2.0, 1.0], [1.0, 1.0]])
def test_refuses_edges_that_do_not_rise(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="rise"):
        Histogram(bad)
