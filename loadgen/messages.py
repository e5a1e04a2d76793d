"""The messages between master and workers; Locust carries them. None holds a secret.

A *part* is a piece of the schedule with a number of its own, which is also its shard's. A part that is handed over gets
new numbers, never its old one: so a message about a part can only mean that part, however late it comes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

# master to worker
ASSIGN = "cliffwatch_assign"  # Assignment: answer with READY
GO = "cliffwatch_go"  # Go: send the part
STOP = "cliffwatch_stop"  # Stop: issue no more, close
RENEWAL = "cliffwatch_renewal"  # Renewal: the answer to a beat
ARRIVED = "cliffwatch_arrived"  # Arrived: the answer to a piece
STANDBY = "cliffwatch_standby"  # Standby: there is nothing to send for you now
CLOCK_ANSWER = "cliffwatch_clock_answer"  # ClockAnswer

# worker to master
READY = "cliffwatch_ready"  # Ready
CLOSED = "cliffwatch_closed"  # WorkerReport: the shard is complete
BEAT = "cliffwatch_beat"  # Beat, every few seconds, with or without a run
PIECE = "cliffwatch_piece"  # Piece, of a shard that was not written in the run's folder
CLOCK_QUESTION = "cliffwatch_clock_question"  # ClockQuestion

# in Locust's own periodic report: a list of WorkerReport, one a part
REPORT_KEY = "cliffwatch"

Message = TypeVar("Message", bound=msgspec.Struct)


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """`refusal` is None, or why the worker cannot send this part. If it `ships`, its journal is on its own disk."""

    run_id: str
    shard: int
    host: str
    pid: int
    refusal: str | None = None
    ships: bool = False


class Go(msgspec.Struct, frozen=True, kw_only=True):
    """`t0_ns` and `t0_unix_ns` are the run's zero on the master's monotonic and wall clocks, the same for all parts."""

    run_id: str
    shard: int
    t0_ns: int
    t0_unix_ns: int


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """What is in flight may end for the drain time, or not at all if `now`."""

    now: bool


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A worker lives, holds these parts of this run, and has `closed` those. `sent_ns` is its own monotonic clock."""

    run_id: str | None
    shards: list[int]
    host: str
    pid: int
    sent_ns: int
    closed: list[int] = []


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """The beat of `sent_ns` was heard; of the parts `asked` about, those `held` are still the worker's own. Of parts
    that it has closed, the master was never told about those `unheard`."""

    run_id: str | None
    asked: list[int]
    held: list[int]
    sent_ns: int
    unheard: list[int] = []


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some bytes of a finished shard, from `offset` on; `sha256` is the whole shard's, hexadecimal."""

    run_id: str
    shard: int
    offset: int
    total: int
    sha256: str
    data: bytes


class Arrived(msgspec.Struct, frozen=True, kw_only=True):
    """How many bytes of a shard have arrived, from the first on."""

    run_id: str
    shard: int
    bytes: int


class Standby(msgspec.Struct, frozen=True, kw_only=True):
    """Why a worker has nothing to send, in words for whoever started it."""

    run_id: str
    text: str


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
    data: dict[str, Any] = msgspec.to_builtins(message, builtin_types=(bytes,))
    return data


def read(data: object, kind: type[Message]) -> Message | None:
    """A message that came in, None where it is not of that kind: another version's, or nonsense."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return None
