"""A small HTTP/1.1 server face: asyncio protocol, httptools parser, nothing awaited between a token and its bytes.

A general framework spends more time on one chunk of a stream than the whole budget of this server (50 µs at 20,000
chunks a second on one core); here a chunk is one `transport.write`.

Bounds: header bytes, body bytes, connections, idle time, and bytes a slow client may leave unread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast
from urllib.parse import unquote

import httptools

MAX_HEADER_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024
MAX_UNREAD_BYTES = 4 * 1024 * 1024
MAX_CONNECTIONS = 8192
IDLE_S = 75.0

_SERVER = b"server: cliffwatch-engine\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True)
class Request:
    """One request, whole."""

    method: str
    target: str  # as it came, with its query
    path: str
    headers: dict[str, str]
    body: bytes
    received_s: float  # monotonic, when its last byte was read
    keep_alive: bool = True
    chunked: bool = True  # HTTP/1.0 knows no chunks


@dataclass(slots=True)
class _Incoming:
    url: bytearray = field(default_factory=bytearray)
    headers: dict[str, str] = field(default_factory=dict)
    header_bytes: int = 0
    body: bytearray = field(default_factory=bytearray)


class _TooLargeError(Exception):
    """A request over its bounds; `status` is the answer."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


Handler = Callable[["Connection", Request], None]
Refusal = Callable[[int, str], bytes]


class Connection(asyncio.Protocol):
    """One client. The handler answers each request by `respond`, or `start`, `write`..., `finish`.

    Args:
        handle: called with each whole request; must not block.
        refusal: body of an answer that the server itself makes (status, message), as JSON.
        connections: the set of all open connections; this one adds and removes itself.
    """

    def __init__(self, handle: Handler, refusal: Refusal, connections: set[Connection]) -> None:
        self._handle = handle
        self._refusal = refusal
        self._connections = connections
        self.transport: asyncio.Transport | None = None
        self.on_gone: Callable[[], None] | None = None  # set while an answer is in the making
        # called when an answer ends: its status, and its content-length (0 for a stream)
        self.on_finished: Callable[[int, int], None] | None = None
        self.busy = False  # an answer is in the making
        self.extra = b""  # header lines of the answer that the handler adds
        self._waiting_since_s = time.monotonic()  # for a request, or for the rest of one
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = _Incoming()
        self._pending: list[Request] = []
        self._request: Request | None = None
        self._status = 0
        self._length = 0
        self._paused = False

    def waits_longer_than(self, seconds: float) -> bool:
        """Whether the client has owed a request, or the rest of one, for that long."""
        return not self.busy and time.monotonic() - self._waiting_since_s > seconds

    # -- asyncio -----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast("asyncio.Transport", transport)  # uvloop's is one without saying so
        if len(self._connections) >= MAX_CONNECTIONS:
            self._refuse(503, "too many open connections")
            return
        self._connections.add(self)
        transport.set_write_buffer_limits(high=256 * 1024)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.transport = None
        self._connections.discard(self)
        self._pending.clear()
        if self.on_gone is not None:
            self.on_gone()
            self.finish()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except _TooLargeError as error:
            self._refuse(error.status, HTTPStatus(error.status).phrase)
        except httptools.HttpParserUpgrade:
            return  # the request is answered as if it had not asked, and what follows it is not HTTP
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, _TooLargeError):
                self._refuse(cause.status, HTTPStatus(cause.status).phrase)
            else:
                self._refuse(400, "Invalid HTTP request received.")

    # -- httptools ---------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._incoming = _Incoming()
        self._waiting_since_s = time.monotonic()

    def on_url(self, url: bytes) -> None:
        self._incoming.url += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_header(len(name) + len(value) + 4)
        self._incoming.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        length = self._incoming.headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            raise _TooLargeError(413)
        if self._incoming.headers.get("expect", "").lower() == "100-continue" and self.transport is not None:
            self.transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        self._incoming.body += body
        if len(self._incoming.body) > MAX_BODY_BYTES:
            raise _TooLargeError(413)

    def on_message_complete(self) -> None:
        incoming = self._incoming
        target = bytes(incoming.url).decode("latin-1")
        request = Request(
            method=self._parser.get_method().decode("latin-1"),
            target=target,
            path=unquote(target.partition("?")[0]),
            headers=incoming.headers,
            body=bytes(incoming.body),
            received_s=time.monotonic(),
            keep_alive=self._parser.should_keep_alive() and not self._parser.should_upgrade(),
            chunked=self._parser.get_http_version() != "1.0",
        )
        self._pending.append(request)
        if self.busy and self.transport is not None:
            self.transport.pause_reading()
        self._next()

    def _count_header(self, size: int) -> None:
        self._incoming.header_bytes += size
        if self._incoming.header_bytes > MAX_HEADER_BYTES:
            raise _TooLargeError(431)

    # -- answers -----------------------------------------------------------------------------------------------------

    def respond(self, status: int, body: bytes, *, content_type: str = "application/json") -> None:
        """Answer the current request whole."""
        self._length = len(body)
        self._head(status, b"content-length: %d\r\ncontent-type: %b\r\n" % (len(body), content_type.encode()))
        if self._request is None or self._request.method != "HEAD":
            self.write(body)
        self.finish()

    def start(self, content_type: str) -> None:
        """Open a streamed answer of status 200; its head goes out at once."""
        self._length = 0
        coding = b"transfer-encoding: chunked\r\n"
        if self._request is not None and not self._request.chunked:
            coding, self._request.keep_alive = b"", False  # the end of the stream is the end of the connection
        self._head(200, b"content-type: %b\r\n%b" % (content_type.encode(), coding))

    def write(self, data: bytes) -> None:
        """Send bytes; for a stream they are framed as HTTP chunks already. A client that reads too slowly is cut."""
        transport = self.transport
        if transport is None:
            return
        transport.write(data)
        if self._paused and transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            transport.abort()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    def _head(self, status: int, headers: bytes) -> None:
        self._status = status
        close = self._request is None or not self._request.keep_alive
        connection = b"connection: close\r\n" if close else b""
        reason = HTTPStatus(status).phrase.encode("ascii")
        self.write(b"HTTP/1.1 %d %b\r\n%b%b%b%b\r\n" % (status, reason, _SERVER, headers, self.extra, connection))

    def finish(self) -> None:
        """End the current answer, all of it written; go on to the client's next request, or close."""
        request, self._request = self._request, None
        finished, self.on_finished, self.on_gone = self.on_finished, None, None
        self.busy = False
        self._waiting_since_s = time.monotonic()
        if finished is not None:
            finished(self._status, self._length)
        if self.transport is None:
            return
        if request is None or not request.keep_alive:
            self.transport.close()
        elif self._pending:
            asyncio.get_running_loop().call_soon(self._next)
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    def _next(self) -> None:
        if self.busy or not self._pending or self.transport is None:
            return
        self.busy = True
        self.extra = b""
        self._request = self._pending.pop(0)
        self._handle(self, self._request)

    def _refuse(self, status: int, message: str) -> None:
        """Answer what cannot be understood, and close; nothing is said in the middle of another answer."""
        if self.transport is None:
            return
        if self.busy:
            self.transport.abort()
            return
        self._request = None
        self.respond(status, self._refusal(status, message))
