"""What Prometheus is asked over its HTTP API, and its answers read: checked, finite, bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cliffwatch.errors import CliffwatchError, UnreachableError, shorten

MAX_SERIES = 50_000
PARTIAL = "the answer is partial: some of its stores did not answer"
SLOW_KEEP_S = 60.0  # what changes slowly or costs much: bucket edges, sums over the whole period


@dataclass(frozen=True, slots=True)
class Ask:
    """One question: the path below the server's address, its form, and how long (seconds) an answer may serve again."""

    path: str
    form: tuple[tuple[str, str], ...] = ()
    keep_s: float = 0.0


Reply = bytes | CliffwatchError
# Answers in the order of the questions; an error stands in the place of the answer that could not be had.
Asker = Callable[[Sequence[Ask]], Sequence[Reply]]


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its labels and its (Unix seconds, value) points; an instant query gives one point."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def value(self) -> float:
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Answer:
    """The series of a query, points without a finite value left out, and what Prometheus warns of."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrometheusAlert:
    """An alert as Prometheus has it: `state` is `pending` or `firing`, `since` as it writes times (RFC 3339)."""

    name: str
    state: str
    labels: dict[str, str]
    since: str


def instant(promql: str, *, keep_s: float = 0.0) -> Ask:
    """An instant query at the server's own time."""
    return Ask("/api/v1/query", (("query", promql),), keep_s)


def raw_samples(selected: str, *, start_s: float, end_s: float, keep_s: float = 0.0) -> Ask:
    """The samples themselves, as they were scraped, after `start_s` up to `end_s` (Unix seconds)."""
    length_ms = math.ceil((end_s - start_s) * 1_000)
    return Ask("/api/v1/query", (("query", f"{selected}[{length_ms}ms]"), ("time", f"{end_s:.3f}")), keep_s)


def ranged(promql: str, *, start_s: float, end_s: float, step_s: float, keep_s: float = SLOW_KEEP_S) -> Ask:
    """A range query; times in Unix seconds."""
    form = (("query", promql), ("start", f"{start_s:.3f}"), ("end", f"{end_s:.3f}"), ("step", f"{step_s:g}"))
    return Ask("/api/v1/query_range", form, keep_s)


ALERTS = Ask("/api/v1/alerts")


class _Row(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


class _Result(msgspec.Struct):
    result: list[_Row]


class _Alert(msgspec.Struct):
    labels: dict[str, str]
    state: str
    activeAt: str = ""  # noqa: N815  as Prometheus spells it


class _Alerts(msgspec.Struct):
    alerts: list[_Alert]


class _Envelope(msgspec.Struct):
    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)
    isPartial: bool = False  # noqa: N815  as VictoriaMetrics spells it


def read_answer(reply: Reply) -> Answer:
    """The series of an instant or a range query.

    Raises:
        CliffwatchError: the reply is an error already, or UnreachableError: it is no answer of Prometheus.
    """
    envelope = _open(reply)
    rows = _decode(envelope.data, _Result).result
    if len(rows) > MAX_SERIES:
        raise UnreachableError(f"answers with {len(rows)} series, more than {MAX_SERIES}", file="Prometheus")
    series = ((row, _points(row)) for row in rows)
    warnings = (*envelope.warnings, *([PARTIAL] if envelope.isPartial else []))
    return Answer(tuple(Series(row.metric, points) for row, points in series if points), warnings)


def read_alerts(reply: Reply) -> tuple[PrometheusAlert, ...]:
    """What `/api/v1/alerts` says. Raises as `read_answer` does."""
    alerts = _decode(_open(reply).data, _Alerts).alerts
    return tuple(
        PrometheusAlert(one.labels.get("alertname", ""), one.state, one.labels, one.activeAt) for one in alerts
    )


def _points(row: _Row) -> tuple[tuple[float, float], ...]:
    texts = [row.value] if row.value is not None else row.values
    try:
        points = [(time, float(text)) for time, text in texts]
    except ValueError as error:
        raise _no_answer(error) from error
    return tuple((time, value) for time, value in points if math.isfinite(value))


def _open(reply: Reply) -> _Envelope:
    if isinstance(reply, CliffwatchError):
        raise reply
    envelope: _Envelope = _decode(reply, _Envelope)
    if envelope.status != "success":
        raise UnreachableError(f"refused a query: {shorten(envelope.error)}", file="Prometheus")
    return envelope


def _decode(body: bytes | msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise _no_answer(error) from error


def _no_answer(error: Exception) -> UnreachableError:
    message = f"gives no answer of Prometheus: {shorten(str(error))}"
    return UnreachableError(message, file="Prometheus", allowed="the address of a Prometheus server")
