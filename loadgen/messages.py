"""The messages between master and workers; Locust carries them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

# master to worker
ASSIGN = "cliffwatch_assign"  # Assignment: answer with READY
GO = "cliffwatch_go"  # {"t0_ns", "t0_unix_ns"}: the run's zero on the master's monotonic and wall clocks
STOP = "cliffwatch_stop"  # {"now"}: issue no more, let what is in flight end for the drain time (not if now), close
CLOCK_ANSWER = "cliffwatch_clock_answer"  # ClockAnswer

# worker to master
READY = "cliffwatch_ready"  # {"run_id", "shard", "host", "pid", "refusal"}: refusal is None, or why it cannot take part
CLOSED = "cliffwatch_closed"  # WorkerReport: the shard is complete
CLOCK_QUESTION = "cliffwatch_clock_question"  # ClockQuestion

# in Locust's own periodic report: WorkerReport
REPORT_KEY = "cliffwatch"

Message = TypeVar("Message", bound=msgspec.Struct)


class ClockQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What time is it? `sent_ns` is the worker's monotonic clock."""

    sent_ns: int


class ClockAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """When the question came and its answer left by the master's monotonic clock; its wall clock is `wall_ns` more."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    wall_ns: int


def plain(message: msgspec.Struct) -> dict[str, Any]:
    """A message in plain types, as Locust's msgpack carries them."""
    data: dict[str, Any] = msgspec.to_builtins(message)
    return data


def read(data: object, kind: type[Message]) -> Message | None:
    """A message that came in, None where it is not of that kind: another version's, or nonsense."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return None
