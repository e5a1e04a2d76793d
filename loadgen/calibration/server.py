"""A server of known latency: it streams on an absolute schedule and keeps the instant before each write.

The truth is what it really wrote, on the same monotonic clock as the client's, so its own lateness is not charged to
the client. A process of its own, on loopback, with nothing of the load generator in it:

    python -m loadgen.calibration.server TTFT_S GAP_S TOKENS

prints its port. `POST` streams an answer, `GET` gives the instants of all answers so far and forgets them.
"""

from __future__ import annotations

import heapq
import json
import select
import socket
import sys
from contextlib import suppress
from time import monotonic_ns

MAX_REQUEST_BYTES = 65536
_BACKLOG = 1024
_TEXT = b'{"choices":[{"index":0,"text":" a","finish_reason":%s}]}'
_JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _event(data: bytes) -> bytes:
    return b"%x\r\ndata: %s\n\n\r\n" % (len(data) + 8, data)


_CHUNK = _event(_TEXT % b"null")
_LAST = _event(_TEXT % b'"length"') + _event(b"[DONE]") + b"0\r\n\r\n"


class Server:
    """One thread, one heap of writes that are due."""

    def __init__(self, ttft_s: float, gap_s: float, tokens: int) -> None:
        self._ttft_ns, self._gap_ns, self._tokens = round(ttft_s * 1e9), round(gap_s * 1e9), tokens
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
        self._listener.setblocking(False)
        self._peers: dict[socket.socket, bytes] = {}
        self._due: list[tuple[int, int, socket.socket, list[int]]] = []  # when, number (a tie-break), to whom, instants
        self._number = 0
        self._truth: dict[str, list[int]] = {}

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def serve(self) -> None:
        """Until the process is ended."""
        while True:
            wait_s = max(0, self._due[0][0] - monotonic_ns()) / 1e9 if self._due else None
            for sock in select.select([self._listener, *self._peers], [], [], wait_s)[0]:
                if sock is self._listener:
                    self._accept()
                else:
                    self._read(sock)
            while self._due and self._due[0][0] <= monotonic_ns():
                self._write()

    def _accept(self) -> None:
        with suppress(OSError):
            peer, _ = self._listener.accept()
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[peer] = b""

    def _read(self, peer: socket.socket) -> None:
        try:
            data = peer.recv(MAX_REQUEST_BYTES)
        except OSError:
            data = b""
        read_ns = monotonic_ns()
        request = self._peers[peer] + data
        if not data or len(request) > MAX_REQUEST_BYTES:
            del self._peers[peer]
            peer.close()
            return
        if b"\r\n\r\n" not in request:
            self._peers[peer] = request
            return
        self._peers[peer] = b""
        if request.startswith(b"GET "):
            body = json.dumps(self._truth).encode()
            self._truth = {}
            peer.sendall(_JSON_HEAD % len(body) + body)
            return
        instants = self._truth.setdefault(_request_id(request), [])
        instants.append(read_ns)
        self._push(read_ns + self._ttft_ns, peer, instants)

    def _push(self, due_ns: int, peer: socket.socket, instants: list[int]) -> None:
        self._number += 1
        heapq.heappush(self._due, (due_ns, self._number, peer, instants))

    def _write(self) -> None:
        due_ns, _, peer, instants = heapq.heappop(self._due)
        written = len(instants) - 1
        data = _LAST if written == self._tokens - 1 else _CHUNK
        if not written:
            data = _HEAD + data
        instants.append(monotonic_ns())
        try:
            peer.send(data)
        except OSError:  # the client left
            return
        if written < self._tokens - 1:
            self._push(due_ns + self._gap_ns, peer, instants)


def _request_id(request: bytes) -> str:
    for line in request.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"x-request-id":
            return value.strip().decode("latin-1")
    return ""


def main() -> None:
    """See the module."""
    ttft_s, gap_s, tokens = sys.argv[1:]
    server = Server(float(ttft_s), float(gap_s), int(tokens))
    print(server.port, flush=True)  # noqa: T201
    server.serve()


if __name__ == "__main__":
    main()
