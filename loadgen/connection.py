"""One HTTP/1.1 connection over a gevent socket, built for one purpose: to know when each byte came.

A readable socket is read inside the event loop's own callback and stamped right there, so neither a greenlet switch
nor a parser stands between the kernel and the clock. When many sockets are readable at once, all are read and stamped
before the bytes of any are looked at: what a worker does with one answer is no part of another's time.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol

import gevent
import httptools
from gevent.hub import Waiter

from cliffwatch.records.schema import Outcome
from loadgen.inbox import Inbox
from loadgen.wire_errors import error_text, is_alert, refusal

NS_PER_S = 1_000_000_000
MAX_HEAD_BYTES = 256 * 1024
MAX_RESPONSE_BYTES = 1 << 30
_READ_EVENT = 1  # libev's EV_READ
_DONE_GRACE_S = 1.0  # between the last event of a stream and the end of its HTTP message
_READ_BYTES = 64 * 1024
_TRUSTED_IDLE_NS = 100_000_000  # a server that has just answered on a connection does not close it as idle


class Cancelled(gevent.GreenletExit):
    """Thrown into a greenlet whose request is to end now; its kinds say how that request ended."""

    outcome = Outcome.CANCELLED
    message = "the run was stopped"


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

    def sent(self) -> None:
        """The last byte of the request has just been handed to the kernel."""

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

    def __init__(self, sock: Any, connect_ns: int, inbox: Inbox) -> None:
        self.connect_ns = connect_ns
        self.sent_ns = 0
        self.received = 0
        self.reusable = False
        self._sock = sock
        self._sock.settimeout(0.0)
        self._tls = hasattr(sock, "pending")
        # The kernel's own call, where nothing is encrypted: gevent's wrapper would only be there to wait.
        self._read = sock.recv if self._tls else partial(os.read, sock.fileno())
        self._inbox = inbox
        self._parser = httptools.HttpResponseParser(self)
        self._loop = gevent.get_hub().loop
        self._watcher = self._loop.io(sock.fileno(), _READ_EVENT)
        self._waiter: Any = None
        self._sink: Sink | None = None
        self._stamp_ns = 0  # of the newest read
        self._idle_ns = 0  # when its last exchange ended
        self._parts: list[bytes] = []  # of the body, from one read
        self._lost: OSError | None = None  # why it can be read no more
        self._done_ns = 0  # when a sweep first saw the sink done
        self._headers: dict[str, str] = {}
        self._in_body = self._until_close = self._complete = False
        self._transfer = Transfer(0)

    def exchange(self, request: bytes, sink: Sink, timeouts: Timeouts) -> Transfer:
        """Send `request` and wait until its response has ended, one way or another."""
        self._sink, self._waiter = sink, Waiter()
        self.received, self.reusable, self.sent_ns, self._done_ns = 0, False, 0, 0
        self._in_body = self._until_close = self._complete = False
        self._headers = {}
        try:
            self._send_all(request, timeouts.first_token_s)
        except TimeoutError:
            return Transfer(monotonic_ns(), Outcome.TIMEOUT_FIRST_TOKEN, "the server stopped reading the request")
        except OSError as error:
            return self._unsent(error)
        self.sent_ns = self._stamp_ns = monotonic_ns()
        sink.sent()
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
        if monotonic_ns() - self._idle_ns < _TRUSTED_IDLE_NS:
            return True
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

    def take(self, stamp_ns: int, data: bytes) -> None:
        """Look at what a read gave; nothing means that the connection is at its end."""
        if self._sink is None:
            return
        self._stamp_ns = stamp_ns
        if not data:
            self._end_of_connection(stamp_ns)
            return
        self.received += len(data)
        wrong = self._parse(data)
        wrong = self._pass_on() or wrong
        limit = MAX_RESPONSE_BYTES if self._in_body else MAX_HEAD_BYTES
        if wrong is not None:
            self._end(stamp_ns, Outcome.PROTOCOL, wrong)
        elif self._complete:
            self._end(stamp_ns, clean=True)
        elif self.received > limit:
            self._end(stamp_ns, Outcome.PROTOCOL, f"more than {limit} bytes")

    def _end_of_connection(self, at_ns: int) -> None:
        if self._lost is None:
            self._end(at_ns, clean=self._until_close, message="connection closed")
            return
        outcome = Outcome.TLS if is_alert(self._lost) and not self.received else None
        self._end(at_ns, outcome, f"connection lost: {error_text(self._lost)}")

    def _unsent(self, error: OSError) -> Transfer:
        """The request did not get away. A TLS server that has refused us says why before it closes."""
        if self._tls:
            try:
                self._sock.recv(1)
            except OSError as alert:
                error = alert if is_alert(alert) else error
        outcome = Outcome.TLS if is_alert(error) else Outcome.CONNECT
        return Transfer(monotonic_ns(), outcome, f"connection lost while sending: {error_text(error)}")

    def _send_all(self, request: bytes, limit_s: float) -> None:
        """Most requests fit into the socket's buffer and need no waiting. Raises OSError; TimeoutError is one."""
        try:
            sent = self._sock.send(request)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            sent = 0
        if sent < len(request):
            self._sock.settimeout(limit_s)
            self._sock.sendall(memoryview(request)[sent:])
            self._sock.settimeout(0.0)

    def _on_readable(self) -> None:
        while self._sink is not None:
            try:
                data = self._read(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except OSError as error:
                self._lost, data = error, b""
            self._inbox.put(self, monotonic_ns(), data)
            if not data or not (self._tls and self._sock.pending()):
                return

    def _parse(self, data: bytes) -> str | None:
        """Take head and framing apart, by way of the callbacks below; says what is wrong with them, if anything."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            return refusal(error.__context__ or error)
        except httptools.HttpParserError as error:
            return f"not an HTTP/1.1 response: {error}"
        return None

    def _pass_on(self) -> str | None:
        """Give the sink what the read held of the body, in one piece; says why it would not have it, if so."""
        if not self._parts or self._sink is None:
            return None
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        try:
            self._sink.body(self._stamp_ns, body)
        except Exception as error:  # noqa: BLE001  one answer must not cost the others of this turn of the loop
            return refusal(error)
        return None

    def _end(
        self, at_ns: int, outcome: Outcome | None = None, message: str | None = None, *, clean: bool = False
    ) -> None:
        """Wake the greenlet, through the loop: we may be inside the parser, or in another greenlet."""
        if self._sink is None:
            return
        self._sink = None
        self._watcher.stop()
        self._idle_ns = at_ns
        self._transfer = Transfer(at_ns, outcome, None if clean else message, clean=clean)
        self._loop.run_callback(self._waiter.switch, None)

    # httptools' callbacks

    def on_message_begin(self) -> None:
        if self._complete:  # something after the end of the response
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and self._sink is not None and not self._complete:
            self._in_body = True
            framed = "content-length" in self._headers or "chunked" in self._headers.get("transfer-encoding", "")
            self._until_close = not framed
            self._sink.head(status, self._headers)

    def on_body(self, data: bytes) -> None:
        if not self._complete:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        if not self._in_body:  # 1xx: the response proper follows
            self._headers = {}
        elif not self._complete:
            self.reusable, self._complete = bool(self._parser.should_keep_alive()), True
