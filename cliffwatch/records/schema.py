"""One request, one row: the columns of a run, as a frozen struct and as an Arrow schema.

Times are whole nanoseconds since the run's zero (`manifest.t0_unix_ns` on the wall clock); figures that are derived
from them (TTFT, E2E, ...) are not stored but defined once, as SQL, in `cliffwatch.records.figures`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
import pyarrow as pa


class Outcome(StrEnum):
    """How a request ended; exactly one each (definitions: docs/timing.md)."""

    OK = "ok"
    HTTP_4XX = "http_4xx"
    HTTP_429 = "http_429"
    HTTP_5XX = "http_5xx"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_TOKEN = "timeout_first_token"
    TIMEOUT_TOTAL = "timeout_total"
    STALLED = "stalled"
    STREAM_ERROR = "stream_error"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    PROTOCOL = "protocol"
    CANCELLED = "cancelled"
    LATE = "late"
    LOST = "lost"


# The error of a cancelled request whose user left as the workload had planned; others were cut short with their run.
PLANNED = "planned"

# Outcomes that are neither success nor failure of the server; all others but OK are failures.
NOT_SERVED = frozenset({Outcome.CANCELLED, Outcome.LATE, Outcome.LOST})
FAILURES = frozenset(Outcome) - NOT_SERVED - {Outcome.OK}


class Phase(StrEnum):
    """Which part of the run a request belongs to. Only `measured` is judged; the others are reported apart."""

    COLD = "cold"
    WARMUP = "warmup"
    MEASURED = "measured"


class TokenSource(StrEnum):
    """Where an output token count comes from. All but `server` are shown as estimated."""

    SERVER = "server"
    TOKENIZER = "tokenizer"
    CHUNKS = "chunks"


class RequestRow(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One logical request. Null means unknown or not applicable, never zero.

    `input_tokens` and `max_output_tokens` are per prompt, as asked; `built_input_tokens`, `server_input_tokens`,
    `cached_input_tokens` and `output_tokens` are sums over the prompts of the batch. `session` and `turn` (both from 0)
    place a request in a conversation; its `input_tokens` hold the whole history.

    Of a request that was tried again, `sent_ns` and all that the server did belong to the last attempt, `connect_ns` to
    the first; the `attempt_*` lists have one entry an attempt, and are null for a request with one.
    """

    request_id: int
    worker: int
    phase: Phase
    endpoint: str
    model: str
    batch: int
    cache: str
    input_tokens: int
    built_input_tokens: int | None = None
    server_input_tokens: int | None = None
    cached_input_tokens: int | None = None
    max_output_tokens: int
    output_tokens: int | None = None
    output_tokens_source: TokenSource | None = None
    intended_ns: int
    sent_ns: int | None = None
    connect_ns: int | None = None  # a duration: TCP and TLS set-up, where this request opened a connection
    first_token_ns: int | None = None  # for a batch: the slowest prompt's first token
    first_answer_ns: int | None = None  # first token that is not reasoning
    last_token_ns: int | None = None
    ended_ns: int | None = None  # when the outcome was known; a time-out's right-censored length ends here
    itl_s: float | None = None  # (last - first) / (tokens - 1) a prompt, mean over prompts; null under 2 tokens
    chunks: int = 0  # token-bearing chunks received
    stalls: int = 0
    chunk_gaps_us: list[int] | None = None  # gaps between token-bearing chunks, all prompts one after another
    prompt_ttfts_us: list[int] | None = None  # TTFT from `sent` of each prompt of a batch, by index
    outcome: Outcome
    status: int | None = None
    error: str | None = None
    finish_reason: str | None = None
    warnings: list[str] | None = None
    bytes_received: int = 0
    tenant: str | None = None
    priority: int | None = None
    session: int | None = None
    turn: int | None = None
    attempts: int | None = None  # how often it was tried: 0 when it never was, null when nobody can tell
    attempt_sent_ns: list[int | None] | None = None
    attempt_ended_ns: list[int] | None = None
    attempt_outcomes: list[Outcome] | None = None
    attempt_statuses: list[int | None] | None = None
    cancel_after_s: float | None = None  # when its user was to leave, as planned; since what, the workload says
    replica: str | None = None  # the one that gave the last attempt's answer, where a header said so

    @property
    def first_sent_ns(self) -> int | None:
        """When the first attempt was sent."""
        return self.sent_ns if self.attempt_sent_ns is None else self.attempt_sent_ns[0]


_TEXT = pa.dictionary(pa.int16(), pa.string())

ARROW_SCHEMA = pa.schema(
    [
        pa.field("request_id", pa.int64(), nullable=False),
        pa.field("worker", pa.int32(), nullable=False),
        pa.field("phase", _TEXT, nullable=False),
        pa.field("endpoint", _TEXT, nullable=False),
        pa.field("model", _TEXT, nullable=False),
        pa.field("batch", pa.int32(), nullable=False),
        pa.field("cache", _TEXT, nullable=False),
        pa.field("input_tokens", pa.int32(), nullable=False),
        pa.field("built_input_tokens", pa.int64()),
        pa.field("server_input_tokens", pa.int64()),
        pa.field("cached_input_tokens", pa.int64()),
        pa.field("max_output_tokens", pa.int32(), nullable=False),
        pa.field("output_tokens", pa.int64()),
        pa.field("output_tokens_source", _TEXT),
        pa.field("intended_ns", pa.int64(), nullable=False),
        pa.field("sent_ns", pa.int64()),
        pa.field("connect_ns", pa.int64()),
        pa.field("first_token_ns", pa.int64()),
        pa.field("first_answer_ns", pa.int64()),
        pa.field("last_token_ns", pa.int64()),
        pa.field("ended_ns", pa.int64()),
        pa.field("itl_s", pa.float64()),
        pa.field("chunks", pa.int32(), nullable=False),
        pa.field("stalls", pa.int32(), nullable=False),
        pa.field("chunk_gaps_us", pa.list_(pa.uint32())),
        pa.field("prompt_ttfts_us", pa.list_(pa.uint32())),
        pa.field("outcome", _TEXT, nullable=False),
        pa.field("status", pa.int16()),
        pa.field("error", pa.string()),
        pa.field("finish_reason", _TEXT),
        pa.field("warnings", pa.list_(pa.string())),
        pa.field("bytes_received", pa.int64(), nullable=False),
        pa.field("tenant", _TEXT),
        pa.field("priority", pa.int32()),
        pa.field("session", pa.int64()),
        pa.field("turn", pa.int32()),
        pa.field("attempts", pa.int32()),
        pa.field("attempt_sent_ns", pa.list_(pa.int64())),
        pa.field("attempt_ended_ns", pa.list_(pa.int64())),
        pa.field("attempt_outcomes", pa.list_(pa.string())),
        pa.field("attempt_statuses", pa.list_(pa.int16())),
        pa.field("cancel_after_s", pa.float64()),
        pa.field("replica", _TEXT),
        # The one derived column: finding the longest gap of each of a million rows would mean to read every gap.
        pa.field("max_gap_us", pa.uint32()),
    ],
    metadata={"cliffwatch.schema": "1"},
)

# Columns that came after the first runs were written: in a run without them they are null.
LATER_COLUMNS = frozenset(
    {"tenant", "priority", "session", "turn", "attempts", "cancel_after_s", "replica"}
    | {f"attempt_{name}" for name in ("sent_ns", "ended_ns", "outcomes", "statuses")}
)
