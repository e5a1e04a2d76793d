"""All connections of one worker to its target.

Connections are kept alive and reused newest first; there is no limit on their number, because waiting for a free
connection would hide a queue inside the client.
"""

from __future__ import annotations

import socket
import ssl
from time import monotonic_ns
from typing import Any

import gevent
import gevent.socket

from cliffwatch.records.schema import Outcome
from loadgen.access import Access
from loadgen.connection import Cancelled, Connection, Sink, Timeouts, Transfer
from loadgen.inbox import Inbox
from loadgen.origin import authority
from loadgen.proxy import ProxyRefusedError
from loadgen.wire_errors import error_text


class _ConnectError(Exception):
    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


class Transport:
    """All connections of one worker to one origin."""

    def __init__(self, access: Access, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._origin = access.origin
        self._tls = access.tls
        self._proxy = access.proxy
        self._idle: list[Connection] = []
        self._active: set[Connection] = set()
        self._inbox = Inbox()
        self._addresses: list[tuple[Any, ...]] = []
        self._sweeper = gevent.spawn(self._sweep)

    def send(self, request: bytes, sink: Sink) -> Transfer:
        """Send one request and take in its response. Blocks this greenlet only; never raises for what servers do."""
        connection: Connection | None = None
        connect_ns: int | None = None
        resent = False
        try:
            while True:
                connection = None if resent else self._newest_idle()
                reused = connection is not None
                if connection is None:
                    connection = self._connect()
                    connect_ns = connection.connect_ns
                transfer = self._exchange(connection, request, sink)
                if not (reused and _broken_before_answer(transfer)):
                    break
                resent = True  # the server had closed the connection while it was idle
        except Cancelled as end:
            transfer = Transfer(monotonic_ns(), end.outcome, end.message)
            if connection is not None:
                transfer.sent_ns, transfer.bytes_received = connection.sent_ns or None, connection.received
        except _ConnectError as error:
            transfer = Transfer(monotonic_ns(), error.outcome, error.message)
        transfer.connect_ns, transfer.resent = connect_ns, resent
        return transfer

    def open_connections(self) -> int:
        """Connections to the target, idle ones included: each holds a local port and a file descriptor."""
        return len(self._idle) + len(self._active)

    def close(self) -> None:
        self._sweeper.kill(block=False)
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, connection: Connection, request: bytes, sink: Sink) -> Transfer:
        self._active.add(connection)
        try:
            return connection.exchange(request, sink, self.timeouts)
        finally:
            self._active.discard(connection)
            if connection.reusable:
                self._idle.append(connection)
            else:
                connection.close()

    def _newest_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.alive():
                return connection
            connection.close()
        return None

    def _sweep(self) -> None:
        while True:
            gevent.sleep(self.timeouts.sweep_s)
            now_ns = monotonic_ns()
            for connection in tuple(self._active):
                connection.check_deadlines(now_ns, self.timeouts)

    def _connect(self) -> Connection:
        start_ns = monotonic_ns()
        limit = gevent.Timeout(self.timeouts.connect_s)
        try:
            with limit:
                sock = self._trusted(self._open_socket())
        except gevent.Timeout as timeout:
            if timeout is not limit:
                raise
            message = f"no connection within {self.timeouts.connect_s:g} s"
            raise _ConnectError(Outcome.TIMEOUT_CONNECT, message) from None
        except ProxyRefusedError as error:
            raise _ConnectError(Outcome.CONNECT, str(error)) from error
        except OSError as error:
            where = "" if self._proxy is None else f"the proxy {self._proxy.authority}: "
            raise _ConnectError(Outcome.CONNECT, where + error_text(error)) from error
        return Connection(sock, monotonic_ns() - start_ns, self._inbox)

    def _open_socket(self) -> Any:
        """A connected socket to the first address that takes one. Raises OSError of the last that did not."""
        if not self._addresses:
            near = self._proxy or self._origin
            self._addresses = gevent.socket.getaddrinfo(near.host, near.port, type=socket.SOCK_STREAM)
        last: OSError = OSError("the name has no address")
        for family, kind, protocol, _, address in self._addresses:
            sock = gevent.socket.socket(family, kind, protocol)
            try:
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                last = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise last

    def _trusted(self, sock: Any) -> Any:
        """The socket as requests may be written to it: for https encrypted, and in a tunnel where there is a proxy."""
        if self._tls is None:
            return sock
        try:
            if self._proxy is not None:
                self._proxy.open_tunnel(sock, authority(self._origin.host, self._origin.port))
            return self._handshake(sock)
        except BaseException:
            sock.close()
            raise

    def _handshake(self, sock: Any) -> Any:
        assert self._tls is not None  # noqa: S101
        try:
            return self._tls.wrap_socket(sock, server_hostname=self._origin.host)
        except ssl.SSLCertVerificationError as error:
            message = f"the server's certificate is not valid: {error.verify_message}"
            raise _ConnectError(Outcome.TLS, message) from error
        except OSError as error:  # ssl.SSLError is one
            raise _ConnectError(Outcome.TLS, f"TLS handshake failed: {error_text(error)}") from error


def _broken_before_answer(transfer: Transfer) -> bool:
    return not transfer.clean and not transfer.bytes_received and transfer.outcome in {None, Outcome.CONNECT}
