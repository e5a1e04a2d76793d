"""Alerts, budget and states over histories whose answers are worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cliffwatch.slo.backtest.history import Grid, History
from cliffwatch.slo.backtest.replay import Firing, Replayed, State, replay
from cliffwatch.slo.burn import Severity
from cliffwatch.slo.watch import Calendar
from tests.slo.backtest.past import DAY_S, STEP_S, history, promise, steady

HOUR = 60  # minutes


def pages(done: Replayed) -> list[Firing]:
    return [one for one in done.firings if one.severity is Severity.PAGE]


def test_a_page_starts_when_both_windows_burn_and_ends_with_the_short_one() -> None:
    """The factor is 0.12 x 24 = 2.88, so it takes above 28.8 % bad. All 5-minute rates are bad for 30 minutes from
    minute 120 on: the hour has 18 bad minutes of 60, its first above 28.8 % (17.28), at minute 137."""
    events, bad = steady(240)
    bad[120:150] = 1.0
    (one,) = pages(replay(history(events, bad), promise(), {}))
    start = history(events, bad).grid.at
    assert (one.start_s, one.end_s) == (start(137), start(150))
    assert one.alert == "SloBurn1h"
    assert one.peak_burn_rate == pytest.approx(10)  # all bad, of a budget of 10 %
    assert one.bad_events == pytest.approx(30 * 60)
    assert not one.open_start


def test_few_bad_events_page_nobody() -> None:
    """One event in 1,000 s and all of them bad: 3.6 in the hour."""
    events, bad = steady(240, 1.0, rate=0.001)
    assert pages(replay(history(events, bad), promise(min_bad_events=3), {}))
    assert not pages(replay(history(events, bad), promise(min_bad_events=4), {}))


@pytest.mark.parametrize(("step_s", "looks"), [(15.0, 10), (45.0, 9), (60.0, 10), (300.0, 6)])
def test_time_before_the_history_counts_nothing(step_s: float, looks: int) -> None:
    """One event in 100 s, all bad, known in the last 10 minutes of two hours alone: as rates they would be 72.

    Looked at are whole minutes, 6600 to 7140; with a step of 45 s the first record is of 6615, with one of 300 s the
    last instant is 6900.
    """
    events = np.full(round(7200 / step_s), np.nan)
    events[-round(600 / step_s) :] = 0.01
    past = History(Grid(0.0, step_s, len(events), 0), {("events", 300): events, ("bad", 300): events})
    assert past.bad_events(7200)[-1] == pytest.approx(looks * 0.6)
    assert np.isnan(past.bad_events(7200)[0])


def test_an_instant_before_the_first_look_knows_nothing() -> None:
    rate = np.full(3, 0.01)
    past = History(Grid(45.0, 10.0, 3, 0), {("events", 300): rate, ("bad", 300): rate})  # 45, 55 and 65 s
    assert past.bad_events(3600) == pytest.approx([np.nan, np.nan, 0.6], nan_ok=True)


def test_what_is_counted_raw_counts_at_once() -> None:
    """Of the hour raw series tell 7 bad events; of the two hours the records only hold 5 minutes, of one a minute."""
    records, raw = np.full(120, np.nan), np.full(120, 7 / 3600)
    records[115:] = 1 / 60
    rates = {(what, window): rate for what in ("events", "bad") for window, rate in ((300, records), (3600, raw))}
    past = History(Grid(0.0, STEP_S, 120, 0), rates, 3600)  # type: ignore[arg-type]
    assert past.bad_events(7200)[-1] == pytest.approx(7)
    records[:] = 1 / 60
    assert past.bad_events(7200)[-1] == pytest.approx(120)


def test_what_fires_at_the_spans_ends_says_so() -> None:
    events, bad = steady(180, 1.0)
    (one,) = pages(replay(history(events, bad, lead=60), promise(), {}))
    assert one.open_start
    assert one.end_s is None


def test_the_budget_is_unknown_until_a_period_lies_behind() -> None:
    """5 % bad of a budget of 10 %: half is left, known from the 1,440th minute of data on."""
    events, bad = steady(1500, 0.05)
    done = replay(history(events, bad), promise(), {})
    assert done.budget.complete_from_s == done.grid.at(1439)
    assert done.left_at(1438) is None
    assert done.budget.left_so_far[1438] == pytest.approx(0.5)
    assert done.left_at(1439) == pytest.approx(0.5)
    assert done.budget.events[1499] == pytest.approx(DAY_S)  # one a second
    assert done.spent_s == 0


def test_the_budget_forgets_what_is_older_than_the_period() -> None:
    events, bad = steady(3000)
    bad[0:144] = 2.0  # more than the budget of a day: spent until a day later the last of it leaves
    events[0:144] = 2.0
    done = replay(history(events, bad), promise(), {})
    assert done.left_at(1439 + 143) is not None
    assert done.left_at(1439 + 144) == pytest.approx(1.0)


def test_a_budget_of_the_calendar_begins_anew_at_its_turn() -> None:
    """1 October 2001 was a Monday, the history begins a day before at 00:00: known from there on for the new week only,
    whose first minute holds its own 60 events, and 20 % of it being bad, is overspent once."""
    events, bad = steady(3 * DAY_S // 60, 0.2)
    monday_s = 1_001_894_400.0
    past = History(Grid(monday_s - DAY_S, STEP_S, len(events), 0), history(events, bad).rates)
    done = replay(past, replace(promise(), calendar=Calendar.WEEK), {})
    assert done.budget.complete_from_s == monday_s
    assert done.budget.events[1439] == pytest.approx(DAY_S)
    assert done.budget.events[1440] == pytest.approx(60)
    assert done.left_at(1440) == pytest.approx(-1)


def test_no_data_no_traffic_and_quiet_are_told_apart() -> None:
    events, bad = steady(100)
    events[10:30] = bad[10:30] = np.nan
    events[50:55] = 0.0
    done = replay(history(events, bad), promise(), {})
    assert done.state_s == {
        State.PAGE: 0,
        State.TICKET: 0,
        State.NO_DATA: 20 * STEP_S,
        State.NO_TRAFFIC: 5 * STEP_S,
        State.QUIET: 75 * STEP_S,
    }
    (gap,) = done.gaps
    assert (gap.start_s, gap.end_s) == (done.grid.at(10), done.grid.at(30))


def test_a_history_without_events_has_neither_budget_nor_alert() -> None:
    events, bad = steady(100, rate=0.0)
    done = replay(history(events, bad), promise(), {})
    assert done.firings == ()
    assert done.left_at(99) is None
    assert np.isnan(done.budget.left_so_far).all()
    assert done.state_s[State.NO_TRAFFIC] == 100 * STEP_S
