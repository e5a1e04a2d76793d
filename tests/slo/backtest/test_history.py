"""Windows over a history, against sums that are added up one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.slo.backtest.history import Grid, History, period_starts, pieces, sums_since
from cliffwatch.slo.live.asks import Series
from cliffwatch.slo.prometheus.record import BASE_S
from cliffwatch.slo.watch import Calendar

NAN = float("nan")


@settings(max_examples=40)
@given(st.lists(st.one_of(st.just(NAN), st.floats(0, 1e4)), min_size=1, max_size=40), st.integers(1, 50))
def test_windows_hold_the_last_samples_and_no_other(values: list[float], steps: int) -> None:
    sums, counts = sums_since(np.array(values), np.arange(len(values)) - steps + 1)
    for at in range(len(values)):
        window = [value for value in values[max(0, at + 1 - steps) : at + 1] if value == value]
        assert counts[at] == len(window)
        assert sums[at] == pytest.approx(sum(window), abs=1e-6)


def test_a_window_of_nothing_sums_to_exactly_nothing() -> None:
    """0.1 + 0.2 - 0.3 is not 0 in binary; a rest of it would be an event that never was."""
    sums, _ = sums_since(np.array([0.1, 0.2, 0.3, 0.0, 0.0]), np.arange(5) - 1)
    assert sums[-1] == 0.0


def test_a_grid_stands_on_multiples_of_its_step_and_reaches_back() -> None:
    grid = Grid.over(1005.0, 1100.0, 30.0, 3600.0)
    assert (grid.at(0), grid.end_s, grid.replayed) == (1020.0, 1080.0, 3)
    assert grid.start_s == 1020.0 - 3600.0


def test_windows_are_open_on_their_left() -> None:
    """5 minutes hold five evaluations of a minute each; seven of 45 s, as the last at 270 s is under 300 s."""
    assert Grid(0.0, 60.0, 9, 0).begins(300)[8] == 8 - 5 + 1
    assert Grid(0.0, 45.0, 9, 0).begins(300)[8] == 8 - 7 + 1


@pytest.mark.parametrize("window_s", [BASE_S, 3600])
def test_pieces_cover_what_is_needed_once(window_s: int) -> None:
    grid = Grid(0.0, 60.0, 100, 40)
    instants = [at for first, last in pieces(grid, window_s, 30) for at in range(round(first), round(last) + 1, 60)]
    first = 0 if window_s == BASE_S else 40
    assert instants == [at * 60 for at in range(first, 100)]


def test_points_stand_at_their_own_instant_and_others_stay_unknown() -> None:
    grid = Grid(600.0, 60.0, 4, 1)
    array = np.full(3, NAN)
    grid.place(array, Series({}, ((540.0, 9.0), (660.0, 1.0), (780.0, 3.0), (840.0, 9.0))), offset=1)
    assert array[0] == 1.0
    assert np.isnan(array[1])
    assert array[2] == 3.0


def test_a_ratio_without_events_is_unknown_and_weighs_nothing() -> None:
    """Two hours by hours of 0.5 and of no events: the ratio over both is that of the events, not the mean of ratios."""
    events, bad = np.array([2.0, 0.0, NAN, 2.0]), np.array([1.0, 0.0, NAN, 0.0])
    history = History(Grid(0.0, 3600.0, 4, 0), {("events", BASE_S): events, ("bad", BASE_S): bad})
    assert np.isnan(history.ratio(BASE_S)[1])
    assert history.ratio(4 * 3600)[3] == pytest.approx(0.25)
    assert history.rate("events", 4 * 3600)[3] == pytest.approx(4 / 3)  # the unknown hour is no hour without events
    assert history.count("events", history.grid.begins(4 * 3600))[3] == pytest.approx(4 * 3600)


@pytest.mark.parametrize(
    ("calendar", "starts"),
    [
        (Calendar.WEEK, ["2026-11-23", "2026-11-30", "2026-12-28"]),  # Mondays
        (Calendar.MONTH, ["2026-11-01", "2026-11-01", "2027-01-01"]),
        (Calendar.QUARTER, ["2026-10-01", "2026-10-01", "2027-01-01"]),
    ],
)
def test_periods_of_the_calendar_begin_in_utc(calendar: Calendar, starts: list[str]) -> None:
    times = np.array(["2026-11-29T23:59:59", "2026-11-30T00:00:00", "2027-01-01T00:00:00"], "datetime64[s]")
    assert period_starts(times, calendar).astype("datetime64[D]").astype(str).tolist() == starts


def test_a_period_of_the_calendar_begins_with_the_grids_first_instant_in_it() -> None:
    """From 23:58:30 of a November's end every minute: 23:58:30, 23:59:30, then December's 00:00:30."""
    begins = Grid(1_796_083_110.0, 60.0, 4, 0).calendar_begins(Calendar.MONTH)
    assert (begins[:2] < 0).all()
    assert begins[2:].tolist() == [2, 2]
