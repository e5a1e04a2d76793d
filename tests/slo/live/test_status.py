"""From rates to a state: values worked out by hand from the SRE workbook's formulas."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.slo.burn import MONTH_S, STANDARD_PAIRS, burn_alert
from cliffwatch.slo.live.status import Evidence, Flow, State, Terms, group_status, worst

TARGET = Decimal("0.999")
TERMS = Terms(
    TARGET, MONTH_S, needed=10_000, min_bad_events=5, alerts=tuple(burn_alert(pair, TARGET) for pair in STANDARD_PAIRS)
)
RATE = 10.0


def evidence(bad: dict[int, float], **options: float | bool | None) -> Evidence:
    """10 events a second in every window, with these shares bad; the others 0."""
    windows = {window: Flow(RATE, RATE * bad.get(window, 0.0)) for window in TERMS.windows}
    return Evidence(windows, **{"period_bad_ratio": 0.0005, "period_events": 1e6, **options})  # type: ignore[arg-type]


def fires(bad: dict[int, float]) -> list[str]:
    return [burn.alert for burn in group_status({}, evidence(bad), TERMS).firing]


def test_half_of_the_budget_spent() -> None:
    """0.05 % of 0.1 % bad: half is left; 0.9995 attained, its Wilson interval at n = 1e6 is half a width of 4.4e-5."""
    one = group_status({"model": "m"}, evidence({}), TERMS)
    assert one.state is State.GOOD
    assert one.attainment == pytest.approx(0.9995)
    assert one.budget_left == pytest.approx(0.5)
    half_width = 1.96 * math.sqrt(0.9995 * 0.0005 / 1e6)
    assert one.low == pytest.approx(0.9995 - half_width, abs=3e-6)
    assert one.high == pytest.approx(0.9995 + half_width, abs=3e-6)
    assert one.enough is True


def test_a_burst_an_hour_ago_is_no_burn() -> None:
    """Long window at 15 times, short at 0: no alert fires, so no view says so."""
    one = group_status({}, evidence({3600: 0.015}), TERMS)
    assert one.burns[0].long.burn_rate == pytest.approx(15)
    assert one.burns[0].short.burn_rate == 0
    assert not one.firing
    assert one.state is State.GOOD


@pytest.mark.parametrize(
    ("long", "short", "expected"),
    [(0.0145, 0.0145, ["SloBurn1h"]), (0.0144, 0.5, []), (0.5, 0.0144, []), (1.0, 1.0, ["SloBurn1h"])],
)
def test_fires_only_above_the_limit_in_both(long: float, short: float, expected: list[str]) -> None:
    """14.4 x 0.1 % is 0.0144: above it, not at it."""
    assert fires({3600: long, 300: short}) == expected


def test_few_bad_events_page_nobody() -> None:
    """Four bad of four in an hour; five are asked for."""
    windows = {window: Flow(4 / 3600, 4 / 3600) for window in TERMS.windows}
    assert not group_status(
        {}, Evidence({**windows, 21_600: Flow(0, 0), 86_400: Flow(0, 0), 259_200: Flow(0, 0)}), TERMS
    ).firing


def test_a_recorded_count_stands_where_a_rate_would_overrate() -> None:
    """Rates of the first ten minutes, all bad: 10 a second over 6 h would be 216,000 bad events; 4 were recorded."""
    for recorded, fired in ((4.0, False), (5.0, True)):
        windows = {window: Flow(RATE, RATE, recorded_bad=recorded) for window in TERMS.windows}
        assert bool(group_status({}, Evidence(windows), TERMS).firing) is fired


def test_no_event_is_neither_good_nor_bad() -> None:
    windows = {window: Flow(0.0, 0.0) for window in TERMS.windows}
    one = group_status({}, Evidence(windows), TERMS)
    assert one.state is State.NO_TRAFFIC
    assert (one.attainment, one.low, one.budget_left, one.events, one.enough, one.forecast) == (None,) * 6
    assert {burn.long.burn_rate for burn in one.burns} == {None}


def test_nothing_known_is_no_data_and_only_the_past_known_is_stale() -> None:
    assert group_status({}, Evidence({}), TERMS).state is State.NO_DATA
    past = {window: Flow(RATE, 0.0) for window in TERMS.windows if window > 300}
    assert group_status({}, Evidence(past, 0.0, 1e6), TERMS).state is State.STALE


@pytest.mark.parametrize(
    ("bad", "options", "state"),
    [
        ({}, {"mixed": True}, State.MIXED_LAYOUT),
        ({3600: 0.02, 300: 0.02}, {"mixed": True}, State.BURNING),
        ({3600: 0.02, 300: 0.02}, {"period_bad_ratio": 0.001}, State.EXHAUSTED),
        ({}, {"period_bad_ratio": 0.00099}, State.GOOD),
    ],
)
def test_the_worst_state_is_told(bad: dict[int, float], options: dict[str, float | bool | None], state: State) -> None:
    assert group_status({}, evidence(bad, **options), TERMS).state is state


def test_the_budget_lasts_as_long_as_the_workbook_says() -> None:
    """Half of the budget at a burn rate of 10: 30 d x 0.5 / 10 = 1.5 d; the band is that of 1 % of 36,000 events."""
    forecast = group_status({}, evidence({3600: 0.01}), TERMS).forecast
    assert forecast is not None
    assert forecast.after_s == pytest.approx(1.5 * 86_400)
    half_width = 1.96 * math.sqrt(0.01 * 0.99 / 36_000)
    assert forecast.earliest_s == pytest.approx(0.5 * 0.001 * MONTH_S / (0.01 + half_width), rel=0.01)
    assert forecast.latest_s == pytest.approx(0.5 * 0.001 * MONTH_S / (0.01 - half_width), rel=0.01)


def test_without_bad_events_the_budget_lasts_but_surely_only_so_long() -> None:
    forecast = group_status({}, evidence({}), TERMS).forecast
    assert forecast is not None
    assert forecast.after_s is None
    assert forecast.latest_s is None
    assert forecast.earliest_s is not None  # none bad of 36,000 still allows a few


def test_a_window_holds_no_more_events_than_the_period() -> None:
    """Recorded for ten minutes only: the average over three days stands for these ten minutes' events."""
    one = group_status({}, evidence({}, period_events=6_000.0), TERMS)
    assert one.burns[3].long.events == 6_000
    assert one.burns[0].short.events == RATE * 300
    assert one.enough is False


def test_the_worst_of_several() -> None:
    assert worst([State.GOOD, State.NO_TRAFFIC, State.BURNING]) is State.BURNING
    assert worst([]) is State.NO_DATA


rates = st.floats(0, 1e6, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(TERMS.windows), st.tuples(rates, st.floats(0, 1))),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(0, 1e12),
)
def test_never_a_nan_and_never_a_figure_from_nothing(
    windows: dict[int, tuple[float, float]], ratio: float | None, events: float | None
) -> None:
    flows = {window: Flow(rate, rate * bad) for window, (rate, bad) in windows.items()}
    one = group_status({}, Evidence(flows, ratio, events), TERMS)
    values = [one.attainment, one.low, one.high, one.budget_left, *(burn.long.burn_rate for burn in one.burns)]
    assert all(value is None or math.isfinite(value) for value in values)
    assert (one.attainment is None) == (ratio is None)
    for burn in one.burns:
        assert (burn.long.burn_rate is None) == (flows.get(burn.long.window_s, Flow(0, 0)).events_per_s <= 0)
        assert not burn.fires or (burn.long.burn_rate or 0) > burn.limit * 0.999
