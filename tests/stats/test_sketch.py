"""The sketch: its error bound, and that adding sketches is the sketch of everything."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stats import Sketch, percentile

values = st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), max_size=60)
shares = st.sampled_from([0.05, 0.5, 0.9, 0.95, 0.99])
errors = st.sampled_from([0.001, 0.01, 0.05])


def sketch_of(numbers: list[float], error: float = 0.01) -> Sketch:
    sketch = Sketch(error)
    for number in numbers:
        sketch.add(number)
    return sketch


@given(values, shares, errors)
def test_percentiles_are_within_the_bound(numbers: list[float], p: float, error: float) -> None:
    exact = percentile(numbers, p)
    estimate = sketch_of(numbers, error).percentile(p)
    assert (estimate.n, estimate.few) == (exact.n, exact.few)
    if exact.value is None:
        assert estimate.value is None
    else:
        assert estimate.value == pytest.approx(exact.value, rel=error * (1 + 1e-6), abs=1e-12)


@given(values, values, values)
def test_adding_is_the_sketch_of_all_values_in_any_order(a: list[float], b: list[float], c: list[float]) -> None:
    first, second, third = map(sketch_of, (a, b, c))
    whole = sketch_of(a + b + c)
    assert first.merge(second).merge(third) == whole
    assert first.merge(second.merge(third)) == whole
    assert third.merge(first).merge(second) == whole
    assert first == sketch_of(a), "merge must not change its operands"


@given(values, errors)
def test_survives_json(numbers: list[float], error: float) -> None:
    sketch = sketch_of(numbers, error)
    assert Sketch.from_dict(json.loads(json.dumps(sketch.to_dict(), allow_nan=False))) == sketch


def test_bucket_count_is_as_stated() -> None:
    sketch = Sketch()
    for step in range(200_001):
        sketch.add(1e-6 * 1e9 ** (step / 200_000))
    # ln(1e9) / ln(1.01 / 0.99) = 1036.1
    assert len(sketch.to_dict()["buckets"]) == 1037


@pytest.mark.parametrize("bad", [-1e-12, math.nan, math.inf])
def test_refuses_values_it_cannot_hold(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Sketch().add(bad)


def test_refuses_to_add_different_errors() -> None:
    with pytest.raises(ValueError, match="different errors"):
        Sketch(0.01).merge(Sketch(0.02))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"relative_error": 2, "zeros": 0, "buckets": []},
        {"relative_error": 0.01, "zeros": -1, "buckets": []},
        {"relative_error": 0.01, "zeros": 0, "buckets": [[1, 0]]},
        {"relative_error": 0.01, "zeros": 0, "buckets": [[1, 2]], "lowest": None, "highest": 1},
        {"relative_error": 0.01, "zeros": 0, "buckets": [[1, 2]], "lowest": 2.0, "highest": 1.0},
        {"relative_error": 0.01, "zeros": 0, "buckets": [[1, 2]], "lowest": math.nan, "highest": math.nan},
        {"relative_error": 0.01, "zeros": 0, "buckets": 3},
    ],
)
def test_refuses_what_is_no_sketch(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"sketch|relative_error"):
        Sketch.from_dict(bad)


odd = st.one_of(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=300),
    st.tuples(st.floats(1e-6, 1e3), st.integers(1, 300)).map(lambda both: [both[0]] * both[1]),  # all alike
    st.tuples(st.floats(1e-6, 1), st.floats(1e2, 1e4)).map(lambda two: [two[0]] * 97 + [two[1]] * 3),  # a far tail
    st.integers(2, 300).map(lambda n: [1.0001**step for step in range(n)]),  # many to a bucket
    st.integers(2, 40).map(lambda n: [2.0**step for step in range(-n, n)]),  # one to a bucket, far apart
)


@given(odd, st.integers(1, 8), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_merged_over_eight_workers_within_one_per_cent_of_exact(numbers: list[float], workers: int, p: float) -> None:
    parts = [sketch_of(numbers[worker::workers]) for worker in range(workers)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(Sketch.from_dict(json.loads(json.dumps(part.to_dict()))))
    exact = percentile(numbers, p)
    estimate = merged.percentile(p)
    assert (estimate.n, estimate.few) == (exact.n, exact.few)
    if exact.value is not None:
        assert estimate.value == pytest.approx(exact.value, rel=0.01 * (1 + 1e-6), abs=1e-12)


@given(odd)
def test_percentiles_are_in_order_and_within_the_exact_ends(numbers: list[float]) -> None:
    numbers = numbers * 100  # so that every percentile is shown
    sketch = sketch_of(numbers)
    found = [sketch.percentile(p).value for p in (0.01, 0.5, 0.9, 0.95, 0.99)]
    ends = sketch.to_dict()
    assert [ends["lowest"], ends["highest"]] == [pytest.approx(min(numbers), abs=1e-9), max(numbers)]
    known = [value for value in found if value is not None]
    assert len(known) == len(found)
    assert known == sorted(known)
    assert min(numbers) - 1e-9 <= known[0] and known[-1] <= max(numbers)


@pytest.mark.parametrize("numbers", [[0.386], [0.061, 0.062, 5.987], [1.237]])
def test_nothing_is_rounded_past_the_ends(numbers: list[float]) -> None:
    """Histograms that round to two figures show a P99 above the maximum, and a median that no request had."""
    sketch = sketch_of(numbers * 100)
    found = [sketch.percentile(p).value for p in (0.5, 0.9, 0.99)]
    assert all(value is not None and min(numbers) <= value <= max(numbers) for value in found)
    assert found[0] == pytest.approx(sorted(numbers)[len(numbers) // 2], rel=0.01)
