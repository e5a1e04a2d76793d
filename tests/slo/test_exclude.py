"""What an SLO file excludes: moments in UTC, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cliffwatch.slo.exclude import WEEK_S, Maintenance
from cliffwatch.slo.watch import Watch
from tests.slo.prometheus.test_compile import refused

TTFT = "{sli: ttft, threshold: 2.5s, target: 99%}"


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_a_fixed_window_is_in_utc_whatever_zone_it_is_written_in() -> None:
    window = Maintenance.model_validate({"start": "2026-12-24T02:00:00+01:00", "end": "2026-12-24T03:30:00Z"})
    assert (window.starts_s, window.lasts_s) == (unix("2026-12-24T01:00:00"), 2.5 * 3600)


@pytest.mark.parametrize(
    ("weekly", "some_start", "hours"),
    [
        ("sun 02:00-04:00", "2026-12-06T02:00:00", 2.0),
        ("Mon 00:00 - 00:30", "2026-12-07T00:00:00", 0.5),
        ("sat 23:00-01:00", "2026-12-05T23:00:00", 2.0),
    ],
)
def test_weekly_windows_start_on_their_day(weekly: str, some_start: str, hours: float) -> None:
    window = Maintenance.model_validate({"weekly": weekly})
    assert (unix(some_start) - window.starts_s) % WEEK_S == 0
    assert window.lasts_s == hours * 3600


@pytest.mark.parametrize(
    ("window", "says"),
    [
        ({}, "needs start and end, or weekly"),
        ({"start": "2026-12-24T00:00Z"}, "needs start and end, or weekly"),
        ({"start": "2026-12-24T00:00Z", "weekly": "sun 02:00-04:00"}, "needs start and end, or weekly"),
        ({"start": "2026-12-24T00:00", "end": "2026-12-24T03:00Z"}, "timezone"),
        ({"start": "2026-12-24T03:00Z", "end": "2026-12-24T03:00Z"}, "not after its start"),
        ({"start": 2026, "end": 2027}, "in quotes, such as"),
        ({"weekly": "sun 02:00-02:00"}, "has no length"),
        ({"weekly": "noday 02:00-03:00"}, "such as sun 02:00-04:00"),
        ({"weekly": "son 02:00-03:00"}, "such as sun 02:00-04:00"),
        ({"weekly": "sun 25:00-26:00"}, "such as sun 02:00-04:00"),
        ({"every": "sun"}, "unknown key"),
    ],
)
def test_windows_that_say_nothing_are_refused(window: dict[str, object], says: str) -> None:
    said = refused(TTFT, exclude={"maintenance": [window]})
    assert said.startswith("f.yaml: watch.exclude.maintenance")
    assert says in said


@pytest.mark.parametrize(
    ("watch", "says"),
    [
        ({"exclude": {"labels": {"run_id": ["a"]}}}, "has no label run_id"),
        ({"exclude": {"labels": {"le": ["a"]}}}, "one that the rules use"),
        ({"exclude": {"labels": {"job": []}}}, "too short"),
        ({"exclude": {"sleeping": True}, "engine": "sglang"}, "does not tell whether it sleeps"),
        ({"exclude": {"sleeping": True}, "version": "0.10.0"}, "since 0.11.2"),
        ({"exclude": {"maintenance": [{"weekly": "sun 02:00-04:00"}] * 51}}, "up to 50 windows"),
        ({"calendar": "month", "period": "7d"}, "two lengths of the budget"),
        ({"calendar": ["month"]}, "'week', 'month' or 'quarter'"),
        ({"calendar": "year"}, "'week', 'month' or 'quarter'"),
        ({"max_groups": 0}, "max_groups"),
    ],
)
def test_what_cannot_be_excluded_or_counted_is_refused(watch: dict[str, object], says: str) -> None:
    assert says in refused(TTFT.replace("2.5s", "2s" if watch.get("engine") == "sglang" else "2.5s"), **watch)


def test_a_label_of_another_metric_is_refused_for_this_objective() -> None:
    """HTTP answers do not name a model: excluding one would leave its answers in."""
    said = refused("{sli: availability, target: 99%}", exclude={"labels": {"model_name": ["test"]}})
    assert "has no label model_name, which availability is to be grouped, matched or excluded by" in said


def test_a_calendars_period_sets_the_burn_rates() -> None:
    assert Watch.model_validate({"engine": "vllm", "calendar": "week"}).period == 7 * 86_400
    assert Watch.model_validate({"engine": "vllm", "calendar": "month"}).period_text == "month"


def test_the_ends_of_time_are_moments_too() -> None:
    ends = {"start": "0001-01-01T00:00:00+14:00", "end": "9999-12-31T23:59:59-12:00"}
    assert Maintenance.model_validate(ends).lasts_s > 0
