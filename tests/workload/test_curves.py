"""Rates over time: their integrals against arithmetic by hand, and each inverse against its integral."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from cliffwatch.workload.arrival_parts import ModulatedArrivals, RampArrivals
from cliffwatch.workload.curves import CURVES, Curve

SPEC: TypeAdapter[ModulatedArrivals] = TypeAdapter(ModulatedArrivals)


def curve(kind: str, **fields: object) -> Curve:
    return CURVES[kind](SPEC.validate_python({"kind": kind, **fields}))


def expected(shape: Curve, *times: float) -> list[float]:
    return shape.expected(np.array(times)).tolist()


def test_a_sweep_of_six_stages_up_to_three_keeps_its_halves() -> None:
    spec = RampArrivals(kind="ramp", shape="steps", end_rate=3, stages=6, over=60)
    assert spec.stage_rates == (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    due = expected(CURVES["ramp"](spec), 0, 10, 20, 30, 40, 50, 60, 70)
    assert [after - before for before, after in pairwise(due)] == [5, 10, 15, 20, 25, 30, 30]


def test_steps_from_a_given_start_are_at_equal_distances() -> None:
    spec = RampArrivals(kind="ramp", shape="steps", start_rate=8, end_rate=2, stages=4, over=4)
    assert spec.stage_rates == (8, 6, 4, 2)


@pytest.mark.parametrize(
    ("shape", "times", "due"),
    [
        # 0.5 s + 2.5 s^2 / 20: 5 + 12.5 at 10 s; then 3 a second
        (curve("ramp", start_rate=0.5, end_rate=3, over=10), (5, 10, 12), (2.5 + 3.125, 17.5, 23.5)),
        (curve("ramp", end_rate=2, over=10), (10, 11), (10, 12)),
        # 1 to 16 in 4 s: 2^t, whose integral is (2^t - 1) / log 2
        (
            curve("ramp", shape="geometric", start_rate=1, end_rate=16, over=4),
            (1, 3, 4, 5),
            (1 / math.log(2), 7 / math.log(2), 15 / math.log(2), 15 / math.log(2) + 16),
        ),
        (curve("ramp", shape="geometric", start_rate=2, end_rate=2, over=4), (3, 8), (6, 16)),
        (curve("bursts", on=10, off=20, on_rate=4), (5, 9, 31, 36, 3001), (20, 36, 44, 64, 4004)),
        (curve("bursts", on=1, off=1, on_rate=4, off_rate=0.5), (0.5, 1.5, 2), (2, 4.25, 4.5)),
        # 1 at night, 9 by day; a whole day is 5 * 24; from the trough a quarter of a day loses 4 / (2 pi) of a day's
        (
            curve("diurnal", low=1, high=9, period=24),
            (6, 12, 24),
            (5 * 6 - 4 * 24 / (2 * math.pi), 5 * 12, 5 * 24),
        ),
        (
            curve("diurnal", low=1, high=9, period=24, peak=0),
            (6, 12, 24),
            (5 * 6 + 4 * 24 / (2 * math.pi), 5 * 12, 5 * 24),
        ),
        (
            curve("curve", points=[{"at": 2, "rate": 1}, {"at": 4, "rate": 3}]),
            (2, 3, 4, 6),
            (2, 2 + 1.5, 2 + 4, 2 + 4 + 6),
        ),
        (
            curve("curve", interpolate="steps", points=[{"at": 0, "rate": 1}, {"at": 4, "rate": 3}], repeat=6),
            (4, 6, 10, 12),
            (4, 10, 14, 20),
        ),
        (curve("curve", points=[{"at": 0, "rate": 2}]), (1, 7), (2, 14)),
    ],
)
def test_the_integral_is_that_of_the_rate(shape: Curve, times: tuple[float, ...], due: tuple[float, ...]) -> None:
    assert expected(shape, *times) == pytest.approx(due, rel=1e-12)
    assert shape.when(np.array(due)) == pytest.approx(times, rel=1e-9)


def test_nothing_is_due_after_a_rate_has_ended() -> None:
    shape = curve("curve", points=[{"at": 0, "rate": 2}, {"at": 10, "rate": 0}])
    assert shape.when(np.array([0.0, 9.99, 10.0, 11.0])).tolist() == [
        0.0,
        pytest.approx(9.684, abs=1e-3),
        math.inf,
        math.inf,
    ]
    assert expected(shape, 10, 100) == [10, 10]


def test_pauses_are_stepped_over() -> None:
    shape = curve("bursts", on=1, off=99, on_rate=2)
    assert shape.when(np.array([0.0, 1.0, 2.0, 3.0, 4.0])).tolist() == [0, 0.5, 100, 100.5, 200]


RATES = st.floats(0.001, 1e4)
SHAPES = (
    st.builds(
        lambda shape, start, end, over: curve(
            "ramp",
            shape=shape,
            start_rate=start,
            end_rate=end,
            over=over,
            **({"stages": 7} if shape == "steps" else {}),
        ),
        st.sampled_from(["linear", "geometric", "steps"]),
        RATES,
        RATES,
        st.floats(0.1, 1e5),
    )
    | st.builds(
        lambda low, more, period, peak: curve("diurnal", low=low, high=low + more, period=period, peak=peak),
        RATES | st.just(0.0),
        RATES,
        st.floats(1, 1e5),
        st.floats(0, 1e5),
    )
    | st.builds(
        lambda on, off, rate, low: curve("bursts", on=on, off=off, on_rate=rate, off_rate=low),
        st.floats(0.1, 1e4),
        st.floats(0.1, 1e4),
        RATES,
        RATES | st.just(0.0),
    )
)


@settings(max_examples=200, deadline=None)
@given(shape=SHAPES, share=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_when_is_the_inverse_of_expected(shape: Curve, share: list[float]) -> None:
    due = np.sort(np.array(share)) * expected(shape, 3e5)[0]
    times = shape.when(due)
    assert (np.diff(times) >= -1e-9).all()
    assert shape.expected(times) == pytest.approx(due, rel=1e-9, abs=1e-6)
