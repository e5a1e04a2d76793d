"""Alert events from notifications and from series: one event, however told."""

from __future__ import annotations

import json

import pytest

from cliffwatch.errors import InputError
from cliffwatch.slo.live.alert_events import fingerprint, read_series, read_webhook
from cliffwatch.slo.live.asks import Answer, Series
from cliffwatch.slo.live.history import Grid

LABELS = {"alertname": "SloBurn1h", "slo": "chat", "severity": "page"}
GRID = Grid(start_s=600.0, step_s=60.0, count=5)


def notification(status: str = "firing", ends: str = "0001-01-01T00:00:00Z", labels: object = LABELS) -> bytes:
    alert = {"status": status, "labels": labels, "startsAt": "1970-01-01T00:11:05.123456789Z", "endsAt": ends}
    return json.dumps({"version": "4", "alerts": [alert]}).encode()


def test_the_fingerprint_is_that_of_fnv_1a() -> None:
    """The empty set is the offset basis; of one byte `a`, FNV-1a's published value is af63dc4c8601ec8c."""
    assert fingerprint({}) == "cbf29ce484222325"
    value = 0xAF63DC4C8601EC8C
    for byte in (0xFF, ord("b"), 0xFF):
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    assert fingerprint({"a": "b"}) == f"{value:016x}"


def test_firing_has_no_end_and_resolved_has() -> None:
    (firing,) = read_webhook(notification())
    assert firing.started_unix_s == pytest.approx(665.123456)
    assert firing.ended_unix_s is None
    (resolved,) = read_webhook(notification("resolved", "1970-01-01T00:12:00Z"))
    assert resolved.ended_unix_s == 720
    assert resolved.fingerprint == firing.fingerprint == fingerprint(LABELS)


def test_series_fire_from_their_first_to_their_last_point() -> None:
    """At 660 and 720 once, at 840 again, which is the grid's end: it still fires."""
    series = Series({"__name__": "ALERTS", "alertstate": "firing", **LABELS}, ((660, 1.0), (720, 1.0), (840, 1.0)))
    first, second = read_series(Answer((series,)), GRID)
    assert (first.started_unix_s, first.ended_unix_s) == (660, 780)
    assert (second.started_unix_s, second.ended_unix_s) == (840, None)
    assert first.fingerprint == fingerprint(LABELS)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"alerts": [{}]}', notification(labels={"a": 1}), notification(ends="yesterday"), b"\xff",
     notification(labels={"a": "x" * 3000}), b'{"alerts": [' + b",".join([notification()[27:-2]] * 0) + b"1]}"],
)  # fmt: skip
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        read_webhook(body)
