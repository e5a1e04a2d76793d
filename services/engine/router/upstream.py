"""One connection to a replica: a request goes out, its answer's bytes come in as they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import cast

import httptools

from services.engine.http import Request

# Headers that belong to one connection and not to the request; the body is passed on whole, with its length.
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
    | {"content-length"}
)


class Upstream(asyncio.Protocol):
    """A replica's end of one exchange after the other.

    `on_data` gets the answer's bytes, `on_end` is called once it is whole (True) or the connection broke (False).
    """

    def __init__(self) -> None:
        self.idle_since_s = 0.0
        self.reusable = False  # after an answer: whether the replica keeps the connection
        self._transport: asyncio.Transport | None = None
        self._on_data: Callable[[bytes], None] | None = None
        self._on_end: Callable[[bool], None] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._bodiless = False
        self._headers_done = False
        self._length_known = False

    @property
    def open(self) -> bool:
        """Whether the connection is still there."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: Request, on_data: Callable[[bytes], None], on_end: Callable[[bool], None]) -> None:
        """Send a request on an open connection that is idle."""
        assert self._transport is not None  # noqa: S101
        self._on_data, self._on_end = on_data, on_end
        self._parser = httptools.HttpResponseParser(self)
        self._bodiless = request.method == "HEAD"
        self.reusable = False
        self._transport.write(request_bytes(request))

    def close(self) -> None:
        """Drop the connection; nothing is called any more."""
        self._on_data = self._on_end = None
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        # Without a length the end of the connection is the end of the answer, and the parser has seen its head.
        self._end(whole=exc is None and self._on_end is not None and self._until_close())

    def data_received(self, data: bytes) -> None:
        if self._on_data is None:
            self.close()  # nothing was asked
            return
        self._on_data(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._break()

    # -- httptools ---------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._length_known = False
        self._headers_done = False

    def on_header(self, name: bytes, value: bytes) -> None:  # noqa: ARG002
        if name.lower() in {b"content-length", b"transfer-encoding"}:
            self._length_known = True

    def on_headers_complete(self) -> None:
        self._headers_done = True
        if self._bodiless:
            self._end(whole=True)

    def on_message_complete(self) -> None:
        self.reusable = self._length_known and self._parser.should_keep_alive() and not self._bodiless
        self._end(whole=True)

    def _until_close(self) -> bool:
        return self._headers_done and not self._length_known

    def _break(self) -> None:
        ended = self._on_end
        self.close()
        if ended is not None:
            ended(False)

    def _end(self, *, whole: bool) -> None:
        ended, self._on_data, self._on_end = self._on_end, None, None
        self.idle_since_s = time.monotonic()
        if ended is not None:
            ended(whole)


def request_bytes(request: Request) -> bytes:
    """The request as it goes to the replica; a client of HTTP/1.0 gets the answer of a replica that knows no chunks."""
    version = "1.1" if request.chunked else "1.0"
    lines = [f"{request.method} {request.target} HTTP/{version}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in HOP_BY_HOP]
    if request.body or request.method in {"POST", "PUT", "PATCH"}:
        lines.append(f"content-length: {len(request.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body
