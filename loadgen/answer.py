"""The two ways to take in a response: as a stream of tokens, or as a small body."""

from __future__ import annotations

from cliffwatch.records.schema import Outcome
from cliffwatch.stream.dialect import Reading
from cliffwatch.stream.http_error import MAX_BODY_BYTES, classify_http
from cliffwatch.stream.response import ResponseReader, StreamResult
from loadgen.connection import Transfer

MAX_WHOLE_BYTES = 64 << 20


class BodySink:
    """Keeps a body up to `limit` bytes; what exceeds it is counted as over, not kept."""

    started = False

    def __init__(self, limit: int) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.data = bytearray()
        self.last_ns = 0
        self._limit = limit

    @property
    def done(self) -> bool:
        return len(self.data) >= self._limit

    def sent(self) -> None:
        """Nobody waits for it."""

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    def body(self, stamp_ns: int, data: bytes) -> None:
        self.last_ns = stamp_ns
        self.data += data[: self._limit - len(self.data)]


class StreamSink:
    """One load request's response: an event stream, a whole JSON answer, or an error.

    Attributes:
        retry_after_s: how long the server asked to be left alone, where it did; known with the result.
        headers: of the answer, names in small letters; None before it.
    """

    retry_after_s: float | None = None
    headers: dict[str, str] | None = None

    def __init__(self, dialect: Reading, batch: int, max_tokens: int) -> None:
        self.status: int | None = None
        self.reader = ResponseReader(dialect, batch, max_tokens)
        self._body: BodySink | None = None
        self._feed = self.reader.feed

    @property
    def started(self) -> bool:
        return self.reader.tokens_started

    @property
    def done(self) -> bool:
        return self.reader.done if self._body is None else self._body.done

    def sent(self) -> None:
        """Nobody waits for it."""

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers
        kind = headers.get("content-type", "").lower()
        if status != 200 or "json" in kind or "html" in kind:
            self._body = BodySink(MAX_BODY_BYTES if status != 200 else MAX_WHOLE_BYTES)
            self._body.head(status, headers)
            self._feed = self._body.body

    def body(self, stamp_ns: int, data: bytes) -> None:
        self._feed(stamp_ns, data)

    def result(self, transfer: Transfer) -> StreamResult:
        """What the response amounted to, `transfer` having ended. What the wire says outranks what the bytes say."""
        if self._body is not None and transfer.outcome is None and (failure := self._failure(self._body)):
            return failure
        if self._body is not None and self._body.data and transfer.clean:
            self.reader.feed_whole(self._body.last_ns, bytes(self._body.data))
        found = self.reader.finish(transfer.ended_ns, clean=transfer.clean)
        if transfer.outcome is not None:
            return _as(found, transfer.outcome, transfer.message)
        if found.outcome is Outcome.TRUNCATED and transfer.message:
            return _as(found, Outcome.TRUNCATED, f"{found.error}: {transfer.message}")
        return found

    def _failure(self, body: BodySink) -> StreamResult | None:
        kind = body.headers.get("content-type", "")
        if body.status == 200 and "json" in kind.lower():
            return None
        retry_after = body.headers.get("retry-after")
        outcome, message, wait_s = classify_http(body.status, kind, bytes(body.data), retry_after=retry_after)
        self.retry_after_s = wait_s
        if wait_s is not None:
            message += f" (retry after {wait_s:g} s)"
        return StreamResult(outcome=outcome, error=message)


def _as(found: StreamResult, outcome: Outcome, error: str | None) -> StreamResult:
    fields = {name: getattr(found, name) for name in found.__struct_fields__}
    return StreamResult(**{**fields, "outcome": outcome, "error": error, "warnings": ()})
