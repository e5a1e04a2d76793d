"""The alert log: one event once, however it was told; what fires again after its end is another."""

from __future__ import annotations

from cliffwatch.slo.live.alert_events import AlertEvent
from services.slo.alert_log import AlertLog


def event(started_s: float, ended_s: float | None) -> AlertEvent:
    return AlertEvent("f", {"alertname": "SloBurn1h"}, started_s, ended_s)


def taken(*events: AlertEvent) -> list[tuple[float, float | None]]:
    log = AlertLog()
    for one in events:
        log.take([one])
    return [(one.started_unix_s, one.ended_unix_s) for one in log.newest()]


def test_an_alert_that_fires_again_soon_after_its_end_is_another_event() -> None:
    assert taken(event(5, None), event(5, 65), event(70, None)) == [(70, None), (5, 65)]


def test_a_notification_and_the_series_tell_one_event() -> None:
    """The series tells its beginning up to a step late, and its end too."""
    assert taken(event(5, 65), event(60, 120)) == [(5, 65)]
    assert taken(event(60, None), event(5, 65)) == [(60, 65)]


def test_a_notification_that_comes_twice_counts_once_and_an_end_stays() -> None:
    assert taken(event(5, None), event(5, 65), event(5, 65), event(5, None)) == [(5, 65)]


def test_of_one_alert_whose_end_was_never_told_a_later_beginning_is_another_event() -> None:
    assert taken(event(5, None), event(1000, None)) == [(1000, None), (5, None)]
