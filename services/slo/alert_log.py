"""The latest alert events, each once however often and by whom it was told. A cache: Prometheus can tell them again."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from cliffwatch.slo.live.alert_events import STEP_S, AlertEvent

MAX_EVENTS = 1_000
SAME_WITHIN_S = 2 * STEP_S  # the beginnings of one event as a notification and as a series tell it


class AlertLog:
    """At most `MAX_EVENTS` events, the earliest dropped first."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, float], AlertEvent] = {}

    def take(self, events: Iterable[AlertEvent]) -> None:
        """Add events, or what is new of those that are known: that they have ended."""
        for event in events:
            key = self._known(event) or (event.fingerprint, event.started_unix_s)
            old = self._events.get(key)
            if old is None:
                self._events[key] = event
            elif old.ended_unix_s is None and event.ended_unix_s is not None:
                self._events[key] = msgspec.structs.replace(old, ended_unix_s=event.ended_unix_s)
        for key in sorted(self._events, key=lambda one: one[1])[: max(0, len(self._events) - MAX_EVENTS)]:
            del self._events[key]

    def newest(self) -> list[AlertEvent]:
        """All of them, the newest first."""
        return sorted(self._events.values(), key=lambda one: one.started_unix_s, reverse=True)

    def _known(self, event: AlertEvent) -> tuple[str, float] | None:
        return next(
            (key for key, old in self._events.items() if key[0] == event.fingerprint and _same(old, event)),
            None,
        )


def _same(one: AlertEvent, other: AlertEvent) -> bool:
    """Whether two of one fingerprint are the same event: of about one beginning, and neither over before the other
    began. An alert that is resolved and fires again is another one, as for Alertmanager."""
    near = abs(one.started_unix_s - other.started_unix_s) <= SAME_WITHIN_S
    return near and _over_by(one) > other.started_unix_s and _over_by(other) > one.started_unix_s


def _over_by(event: AlertEvent) -> float:
    return math.inf if event.ended_unix_s is None else event.ended_unix_s
