"""Small real servers whose every byte a test chooses. They run in threads; what they do is a function of the socket."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Behaviour = Callable[[socket.socket, bytes], None]

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"


@dataclass
class Served:
    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(text: str = " the", *, index: int = 0, finish: str | None = None) -> bytes:
    body = {"id": "c", "model": "m", "choices": [{"index": index, "text": text, "finish_reason": finish}]}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


def usage(prompt: int, completion: int) -> bytes:
    body = {"id": "c", "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


END = chunk(DONE) + b"0\r\n\r\n"
ANSWER = STREAM_HEAD + event() + event(finish="length") + usage(5, 2) + END


def whole(status: str, body: bytes, kind: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *headers, "\r\n"]
    return "\r\n".join(lines).encode() + body


def say(data: bytes) -> Behaviour:
    return lambda sock, _request: sock.sendall(data)


def answer_probe(sock: socket.socket, request: bytes) -> bool:
    """Answer what a run asks before its load: the one model, and a token a word. False for any other request."""
    if b"/v1/models" in request:
        sock.sendall(whole("200 OK", b'{"data":[{"id":"m"}]}'))
    elif b"/tokenize" in request:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        text = body.get("prompt") or body.get("messages", [{"content": ""}])[0]["content"]
        sock.sendall(whole("200 OK", json.dumps({"count": len(text.split())}).encode()))
    else:
        return False
    return True


@contextmanager
def serving(behave: Behaviour, *, tls: ssl.SSLContext | None = None, keep_alive: bool = True) -> Iterator[Served]:
    """A server on a free port of 127.0.0.1; `behave` is called once a request, then the connection is kept or not."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    served = Served(listener.getsockname()[1])
    open_sockets: list[socket.socket] = []

    def connection(sock: socket.socket) -> None:
        with suppress(OSError):
            if tls is not None:
                sock = tls.wrap_socket(sock, server_side=True)
                open_sockets.append(sock)
            while (request := _read_request(sock)) is not None:
                served.requests.append(request)
                behave(sock, request)
                if not keep_alive:
                    break
        with suppress(OSError):
            sock.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listener.accept()
                served.connections += 1
                open_sockets.append(sock)
                threading.Thread(target=connection, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield served
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for sock in open_sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _read_request(sock: socket.socket) -> bytes | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body
