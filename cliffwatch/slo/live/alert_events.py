"""Alerts as events with a beginning and an end, from what Alertmanager sends and from Prometheus's own `ALERTS` series.

Both name an event by the fingerprint of its labels; the series tell the beginning only to their step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from cliffwatch.errors import InputError, shorten
from cliffwatch.slo.live.asks import Answer, Ask
from cliffwatch.slo.live.history import Grid
from cliffwatch.slo.prometheus.promql import any_of, selector

STEP_S = 60.0
MAX_ALERTS = 1_000
MAX_TEXT = 2_000
_FNV_OFFSET, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


class AlertEvent(msgspec.Struct, frozen=True):
    """One alert from firing to resolved; `ended_unix_s` None: it still fires. Times in Unix seconds.

    `step_s`: of a series, whose times are the first step at which the alert was there, and was gone; 0: exact times.
    """

    fingerprint: str
    labels: dict[str, str]
    started_unix_s: float
    ended_unix_s: float | None
    step_s: float = 0.0

    @property
    def name(self) -> str:
        return self.labels.get("alertname", "")


class _Sent(msgspec.Struct):
    status: str
    labels: dict[str, str]
    startsAt: datetime  # noqa: N815  as Alertmanager spells them
    endsAt: datetime | None = None  # noqa: N815
    fingerprint: str = ""


class _Webhook(msgspec.Struct):
    alerts: list[_Sent]


def fingerprint(labels: Mapping[str, str]) -> str:
    """Prometheus's own: FNV-1a of 64 bits over the sorted labels, each name and value ended by 0xff."""
    value = _FNV_OFFSET
    for part in (text for label in sorted(labels) for text in (label, labels[label])):
        for byte in (*part.encode(), 0xFF):
            value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return f"{value:016x}"


def read_webhook(body: bytes) -> list[AlertEvent]:
    """The events of a notification (Alertmanager's webhook, version 4). Raises InputError for anything else."""
    try:
        sent = msgspec.json.decode(body, type=_Webhook).alerts
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(
            f"is no notification of Alertmanager: {shorten(str(error))}",
            field="body",
            allowed="its webhook JSON, version 4",
        ) from error
    if len(sent) > MAX_ALERTS or any(_long(one.labels) for one in sent):
        allowed = f"{MAX_ALERTS} alerts, labels of {MAX_TEXT} characters in all"
        raise InputError("holds too much", field="alerts", value=len(sent), allowed=allowed)
    return [_event(one) for one in sent]


def series_ask(names: Collection[str], grid: Grid) -> Ask:
    """The firing alerts of these SLOs."""
    return grid.ask(selector("ALERTS", {"alertstate": "firing"}, {"slo": any_of(names)}))


def read_series(answer: Answer, grid: Grid) -> list[AlertEvent]:
    """The events that the `ALERTS` series over a grid show; one that began before the grid begins with it."""
    events = []
    for series in answer.series:
        labels = {key: value for key, value in series.labels.items() if key not in {"__name__", "alertstate"}}
        present = [value is not None for value in grid.place(series)]
        begun: int | None = None
        for at, here in enumerate([*present, False]):
            if here and begun is None:
                begun = at
            elif not here and begun is not None:
                ended = None if at == grid.count else grid.start_s + at * grid.step_s
                started = grid.start_s + begun * grid.step_s
                events.append(AlertEvent(fingerprint(labels), labels, started, ended, grid.step_s))
                begun = None
    return events


def _event(sent: _Sent) -> AlertEvent:
    ended = sent.endsAt.timestamp() if sent.status == "resolved" and sent.endsAt is not None else None
    return AlertEvent(sent.fingerprint or fingerprint(sent.labels), sent.labels, sent.startsAt.timestamp(), ended)


def _long(labels: Mapping[str, str]) -> bool:
    return sum(len(key) + len(value) for key, value in labels.items()) > MAX_TEXT
