"""The alert log: one event once, however it was told; what fires again after its end is another."""

from __future__ import annotations

from cliffwatch.slo.live.alert_events import AlertEvent
from services.slo.alert_log import AlertLog


def event(started_s: float, ended_s: float | None, step_s: float = 0.0) -> AlertEvent:
    """As a notification tells it, or with a step as a series does."""
    return AlertEvent("f", {"alertname": "SloBurn1h"}, started_s, ended_s, step_s)


def taken(*events: AlertEvent) -> list[tuple[float, float | None]]:
    log = AlertLog()
    for one in events:
        log.take([one])
    return [(one.started_unix_s, one.ended_unix_s) for one in log.newest()]


def test_an_alert_that_fires_again_soon_after_its_end_is_another_event() -> None:
    assert taken(event(5, None), event(5, 65), event(70, None)) == [(70, None), (5, 65)]


def test_a_second_firing_within_a_step_is_another_event_though_no_end_was_told() -> None:
    """Alertmanager tells no end of what fires again before the next notification."""
    assert taken(event(5, None), event(35, None)) == [(35, None), (5, None)]


def test_a_notification_and_the_series_tell_one_event() -> None:
    """The series tells beginning and end up to a step late; the notification's own instants stand."""
    assert taken(event(5, 65), event(60, 120, 60)) == [(5, 65)]
    assert taken(event(60, None, 60), event(5, 65)) == [(5, 65)]
    assert taken(event(5, None), event(60, 120, 60)) == [(5, 120)]


def test_two_firings_that_the_series_shows_as_one_stay_two() -> None:
    """From 5 to 65 and from 70 to 200: there at 60, 120 and 180, gone at 240."""
    assert taken(event(5, 65), event(70, None), event(60, None, 60), event(60, 240, 60)) == [(70, 240), (5, 65)]


def test_a_firing_that_only_the_series_shows_is_told_beside_the_notified_one() -> None:
    assert taken(event(5, 65), event(60, None, 60), event(60, 240, 60)) == [(60, 240), (5, 65)]


def test_a_firing_between_two_steps_takes_nothing_from_the_one_before() -> None:
    assert taken(event(60, 120, 60), event(110, 115)) == [(110, 115), (60, 120)]


def test_a_series_that_began_before_the_day_slides_along_with_it() -> None:
    assert taken(event(0, None, 60), event(60, None, 60), event(120, 600, 60)) == [(0, 600)]


def test_a_notification_that_comes_twice_counts_once_and_an_end_stays() -> None:
    assert taken(event(5, None), event(5, 65), event(5, 65), event(5, None)) == [(5, 65)]


def test_of_one_alert_whose_end_was_never_told_a_later_beginning_is_another_event() -> None:
    assert taken(event(5, None), event(1000, None)) == [(1000, None), (5, None)]
