"""The latest alert events, each once however often and by whom it was told. A cache: Prometheus can tell them again.

A notification tells the instants themselves, so that fingerprint and beginning name an event. A series tells them on
its steps: what it shows is known where a notified event was firing at one of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from cliffwatch.slo.live.alert_events import AlertEvent

MAX_EVENTS = 1_000


class AlertLog:
    """At most `MAX_EVENTS` events, the earliest dropped first. `version` changes when anything was taken."""

    def __init__(self) -> None:
        self.version = 0
        self._events: dict[str, dict[float, AlertEvent]] = {}  # by fingerprint and beginning

    def take(self, events: Iterable[AlertEvent]) -> None:
        """Add events, or what is new of those that are known: that they have ended."""
        for event in events:
            own = self._events.setdefault(event.fingerprint, {})
            (_take_stepped if event.step_s else _take_exact)(own, event)
        self._forget()
        self.version += 1

    def newest(self) -> list[AlertEvent]:
        """All of them, the newest first."""
        events = (event for own in self._events.values() for event in own.values())
        return sorted(events, key=lambda one: one.started_unix_s, reverse=True)

    def _forget(self) -> None:
        for event in self.newest()[MAX_EVENTS:]:
            own = self._events[event.fingerprint]
            del own[event.started_unix_s]
            if not own:
                del self._events[event.fingerprint]


def _take_exact(own: dict[float, AlertEvent], event: AlertEvent) -> None:
    """It stands in place of what a series told of it; an end that is known stays."""
    told = [own.pop(old.started_unix_s) for old in list(own.values()) if old.step_s and _shows(old, event)]
    known = own.get(event.started_unix_s)
    ends = (one.ended_unix_s for one in (known, event, *told) if one is not None)
    ended_s = next((end for end in ends if end is not None), None)
    own[event.started_unix_s] = msgspec.structs.replace(event, ended_unix_s=ended_s)


def _take_stepped(own: dict[float, AlertEvent], event: AlertEvent) -> None:
    shown = [old for old in own.values() if _shows(event, old)]
    last = max(shown, key=lambda one: one.started_unix_s, default=None)
    if last is not None and last.ended_unix_s is None:
        own[last.started_unix_s] = msgspec.structs.replace(last, ended_unix_s=event.ended_unix_s)
    elif last is None or _last_step(event) >= _over_by(last):  # it was there after all that is known had ended
        own[event.started_unix_s] = event


def _shows(stepped: AlertEvent, other: AlertEvent) -> bool:
    """Whether `other` was firing at a step at which the series shows the alert."""
    return other.started_unix_s <= _last_step(stepped) and _over_by(other) > stepped.started_unix_s


def _last_step(stepped: AlertEvent) -> float:
    return _over_by(stepped) - stepped.step_s


def _over_by(event: AlertEvent) -> float:
    return math.inf if event.ended_unix_s is None else event.ended_unix_s
