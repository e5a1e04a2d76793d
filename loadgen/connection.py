"""One HTTP/1.1 connection over a gevent socket, built for one purpose: to know when each byte came.

A readable socket is read inside the event loop's own callback and stamped right there, so neither a greenlet switch
nor a parser stands between the kernel and the clock.
"""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any, Protocol

import gevent
import httptools
from gevent.hub import Waiter

from cliffwatch.errors import CliffwatchError
from cliffwatch.records.schema import Outcome

NS_PER_S = 1_000_000_000
MAX_HEAD_BYTES = 256 * 1024
MAX_RESPONSE_BYTES = 1 << 30
_READ_EVENT = 1  # libev's EV_READ
_DONE_GRACE_S = 1.0  # between the last event of a stream and the end of its HTTP message
_BUFFER = memoryview(bytearray(256 * 1024))  # shared: a read is parsed before the next one starts


class Cancelled(gevent.GreenletExit):
    """Thrown into a greenlet whose request is to end now."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds, each with an outcome of its own; all but `connect_s` count from the last byte sent."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    stall_s: float = 30.0
    total_s: float = 600.0

    @property
    def sweep_s(self) -> float:
        """How often deadlines are looked at: within 5 % of the shortest of them."""
        return min(1.0, max(0.01, min(self.first_token_s, self.stall_s, self.total_s) / 20))


class Sink(Protocol):
    """Takes in one response as it arrives."""

    @property
    def started(self) -> bool:
        """The first token came."""

    @property
    def done(self) -> bool:
        """Nothing that matters follows."""

    def head(self, status: int, headers: dict[str, str]) -> None: ...

    def body(self, stamp_ns: int, data: bytes) -> None: ...


@dataclass(slots=True)
class Transfer:
    """What happened on the wire; instants in monotonic nanoseconds.

    `outcome` is None when a response came as far as the server sent it: then `clean` tells whether HTTP ended it
    properly, and the sink knows what it meant.
    """

    ended_ns: int
    outcome: Outcome | None = None
    message: str | None = None
    connect_ns: int | None = None  # a duration; None on a reused connection
    sent_ns: int | None = None
    clean: bool = False
    bytes_received: int = 0
    resent: bool = False  # the server had closed the idle connection; sent again on a fresh one


class Connection:
    """One socket and its response parser. It is the parser's callback object and the loop's read callback."""

    def __init__(self, sock: Any, connect_ns: int) -> None:
        self.connect_ns = connect_ns
        self.sent_ns = 0
        self.received = 0
        self.reusable = False
        self._sock = sock
        self._tls = hasattr(sock, "pending")
        self._parser = httptools.HttpResponseParser(self)
        self._loop = gevent.get_hub().loop
        self._watcher = self._loop.io(sock.fileno(), _READ_EVENT)
        self._waiter: Any = None
        self._sink: Sink | None = None
        self._stamp_ns = 0  # of the newest read
        self._done_ns = 0  # when a sweep first saw the sink done
        self._headers: dict[str, str] = {}
        self._in_body = self._until_close = False
        self._transfer = Transfer(0)

    def exchange(self, request: bytes, sink: Sink, timeouts: Timeouts) -> Transfer:
        """Send `request` and wait until its response has ended, one way or another."""
        self._sink, self._waiter, self._transfer = sink, Waiter(), Transfer(0)
        self.received, self.reusable, self.sent_ns, self._done_ns = 0, False, 0, 0
        self._in_body = self._until_close = False
        self._headers = {}
        self._sock.settimeout(timeouts.first_token_s)
        try:
            self._sock.sendall(request)
        except TimeoutError:
            return Transfer(monotonic_ns(), Outcome.TIMEOUT_FIRST_TOKEN, "the server stopped reading the request")
        except OSError as error:
            return Transfer(monotonic_ns(), Outcome.CONNECT, f"connection lost while sending: {error_text(error)}")
        self.sent_ns = self._stamp_ns = monotonic_ns()
        self._sock.settimeout(0.0)
        self._watcher.start(self._on_readable)
        try:
            self._waiter.get()
        finally:
            self._watcher.stop()
            self._sink = None
        self._transfer.sent_ns = self.sent_ns
        self._transfer.bytes_received = self.received
        return self._transfer

    def alive(self) -> bool:
        """Whether an idle connection may be used: anything to read on it is its end, or out of place."""
        try:
            self._sock.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        self._watcher.stop()
        self._watcher.close()
        self._sock.close()

    def check_deadlines(self, now_ns: int, limits: Timeouts) -> None:
        """End the exchange if one of its deadlines has passed."""
        sink = self._sink
        if sink is None or not self.sent_ns:
            return
        waited_s = (now_ns - self.sent_ns) / NS_PER_S
        idle_s = (now_ns - self._stamp_ns) / NS_PER_S
        if sink.done:
            self._done_ns = self._done_ns or now_ns
            if (now_ns - self._done_ns) / NS_PER_S > _DONE_GRACE_S:
                self._end(self._stamp_ns, clean=True)
        elif waited_s > limits.total_s:
            self._end(now_ns, Outcome.TIMEOUT_TOTAL, f"not finished within {limits.total_s:g} s")
        elif not sink.started and waited_s > limits.first_token_s:
            self._end(now_ns, Outcome.TIMEOUT_FIRST_TOKEN, f"no token within {limits.first_token_s:g} s")
        elif sink.started and idle_s > limits.stall_s:
            self._end(now_ns, Outcome.STALLED, f"nothing came for {limits.stall_s:g} s")

    def _on_readable(self) -> None:
        while self._sink is not None:
            try:
                size = self._sock.recv_into(_BUFFER)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except OSError as error:
                self._end(monotonic_ns(), message=f"connection lost: {error_text(error)}")
                return
            self._stamp_ns = monotonic_ns()
            if size == 0:
                self._end(self._stamp_ns, clean=self._until_close, message="connection closed")
                return
            self.received += size
            self._feed(_BUFFER[:size])
            if not (self._tls and self._sock.pending()):
                return

    def _feed(self, data: memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:  # raised by the sink: what came is not the dialect
            cause = error.__context__ or error
            text = str(cause) if isinstance(cause, CliffwatchError) else f"{type(cause).__name__}: {cause}"
            self._end(self._stamp_ns, Outcome.PROTOCOL, text)
        except httptools.HttpParserError as error:
            self._end(self._stamp_ns, Outcome.PROTOCOL, f"not an HTTP/1.1 response: {error}")
        limit = MAX_RESPONSE_BYTES if self._in_body else MAX_HEAD_BYTES
        if self.received > limit:
            self._end(self._stamp_ns, Outcome.PROTOCOL, f"more than {limit} bytes")

    def _end(
        self, at_ns: int, outcome: Outcome | None = None, message: str | None = None, *, clean: bool = False
    ) -> None:
        """Wake the greenlet, through the loop: we may be inside the parser, or in another greenlet."""
        if self._sink is None:
            return
        self._sink = None
        self._watcher.stop()
        self._transfer = Transfer(at_ns, outcome, None if clean else message, clean=clean)
        self._loop.run_callback(self._waiter.switch, None)

    # httptools' callbacks

    def on_message_begin(self) -> None:
        if self._sink is None:  # something after the end of the response
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and self._sink is not None:
            self._in_body = True
            framed = "content-length" in self._headers or "chunked" in self._headers.get("transfer-encoding", "")
            self._until_close = not framed
            self._sink.head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.body(self._stamp_ns, data)

    def on_message_complete(self) -> None:
        if not self._in_body:  # 1xx: the response proper follows
            self._headers = {}
        elif self._sink is not None:
            self.reusable = bool(self._parser.should_keep_alive())
            self._end(self._stamp_ns, clean=True)


_ADVICE = {
    errno.EMFILE: "this client ran out of file descriptors (raise `ulimit -n`)",
    errno.EADDRNOTAVAIL: "this client ran out of local ports (add workers on other hosts)",
}


def error_text(error: OSError) -> str:
    """What an operating system error means here, in words."""
    if isinstance(error, socket.gaierror):
        return f"the host name cannot be resolved: {error.strerror or error}"
    return _ADVICE.get(error.errno or 0) or (error.strerror or str(error)).lower()
