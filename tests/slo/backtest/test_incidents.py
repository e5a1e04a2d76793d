"""Incidents read from files, and alerts held against them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.errors import InputError
from cliffwatch.slo.backtest.incidents import Incident, load_incidents, score, within
from cliffwatch.slo.backtest.replay import Firing
from cliffwatch.slo.burn import Severity

T = 1_790_000_000.0


def firing(start: float, end: float | None) -> Firing:
    return Firing("SloBurn1h", Severity.PAGE, {}, T + start, None if end is None else T + end, False, 20.0, 50.0, None)


def incident(start: float, end: float) -> Incident:
    return Incident(start=T + start, end=T + end, name="outage")


def test_alerts_match_incidents_that_they_overlap_or_nearly() -> None:
    """Of four alerts, three match; of three incidents, two. The first of two alerts tells the delay."""
    alerts = [firing(100, 200), firing(150, 160), firing(5_000, 5_100), firing(9_000, None)]
    incidents = [incident(40, 60), incident(2_000, 2_100), incident(9_900, 9_950)]
    done = score(alerts, incidents, span_end_s=T + 9_920, tolerance_s=100)
    assert (done.precision.hits, done.precision.n) == (3, 4)
    assert (done.recall.hits, done.recall.n) == (2, 3)
    assert [one.delay_s for one in done.found] == [60, None, -900]


def test_shares_come_with_their_interval_and_without_any_are_unknown() -> None:
    done = score([firing(0, 10)] * 8, [incident(0, 10)], span_end_s=T, tolerance_s=0)
    assert done.precision.value == 1
    low, high = done.precision.interval or (None, None)
    assert low == pytest.approx(8 / (8 + 1.959964**2))  # Wilson's bound at 8 of 8
    assert high == 1
    nothing = score([], [], span_end_s=T, tolerance_s=0)
    assert nothing.precision.value is nothing.recall.value is nothing.precision.interval is None


def test_incidents_outside_of_the_span_expect_no_alert() -> None:
    inside, outside = incident(0, 10), incident(100, 110)
    assert within([inside, outside], T + 5, T + 50) == (inside,)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("i.yaml", "incidents: [{start: 2026-09-21T14:13:20Z, end: 2026-09-21 17:13:20+02:00, name: outage}]"),
        ("i.yaml", "incidents:\n- {start: 1790000000, end: 1790003600, name: outage}"),
        ("i.csv", "start,end,name\n2026-09-21T14:13:20,1790003600,outage\n"),
    ],
)
def test_files_of_incidents(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (one,) = load_incidents(tmp_path / name)
    assert (one.start, one.end, one.name) == (T, T + 3600, "outage")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("i.yaml", "incidents: []", "incidents"),
        ("i.yaml", "incidents: [{start: 2026-09-21, end: 2026-09-20, name: x}]", "end must be after start"),
        ("i.yaml", "incidents: [{start: yesterday, end: 2026-09-20, name: x}]", "incidents[0].start"),
        ("i.csv", "from,to,name\n1,2,x\n", "allowed: start,end,name"),
        ("i.csv", "start,end,name\n1790000000,1790000100,x,y\n", "line 2: has more values"),
        ("i.csv", "start,end,name\n1790000000\n", "incidents[0]"),
        ("i.csv", 'start,end,name\n"1790000000,2\n', "is no CSV"),
        ("i.csv", "", "allowed: start,end,name"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        load_incidents(tmp_path / name)
    assert says in str(caught.value)
