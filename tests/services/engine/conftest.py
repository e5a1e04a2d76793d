"""A stand-in engine for the tests of its HTTP face, and a raw client that sees every byte."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from cliffwatch.cli import processes
from tests.servers import engines
from tests.servers.processes import Server

MODEL = "standin"


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A fast engine: waits are a hundredth of the measured ones."""
    options = ("--model", MODEL, "--speed", "100", "--max-model-len", "4096")
    with engines.standin(tmp_path_factory.mktemp("engine"), *options) as server:
        yield server
        assert "Traceback" not in server.log.read_text(encoding="utf-8")


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Until it holds. Raises AssertionError."""
    assert processes.wait_for(condition, timeout_s=seconds, every_s=0.02), "it did not come about"


def connect(server: Server) -> socket.socket:
    """A raw connection."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def raw_request(path: str, body: object, *, method: str = "POST", headers: str = "") -> bytes:
    """A request's bytes; `body` is JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def exchange(server: Server, data: bytes) -> bytes:
    """Send bytes on a connection of their own, and read until the server closes it."""
    with closing(connect(server)) as connection:
        connection.sendall(data)
        return read_all(connection)


def call(server: Server, path: str, body: object, *, headers: str = "", method: str = "POST") -> tuple[int, Any]:
    """Status and parsed body of one request."""
    data = raw_request(path, body, headers=headers + "connection: close\r\n", method=method)
    head, _, answer = exchange(server, data).partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(answer) if answer else None


def events(server: Server, path: str, body: dict[str, Any]) -> list[Any]:
    """The events of a streamed answer, `[DONE]` as text; checks the HTTP chunks around them, one an event."""
    data = raw_request(path, {**body, "stream": True}, headers="connection: close\r\n")
    head, _, rest = exchange(server, data).partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"text/event-stream; charset=utf-8" in head
    found: list[Any] = []
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert rest == b"\r\n"
            return found
        event, rest = rest[:length], rest[length:]
        assert rest.startswith(b"\r\n")
        rest = rest[2:]
        assert event.startswith(b"data: ")
        assert event.endswith(b"\n\n")
        text = event[6:-2].decode()
        found.append(text if text == "[DONE]" else json.loads(text))


def metric(server: Server, name: str, **labels: str) -> float:
    """The sum of a metric's samples that carry these labels, from `/metrics`."""
    with closing(connect(server)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        text = read_all(connection).decode()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [line for line in text.splitlines() if line.startswith((name + "{", name + " "))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if all(label in line for label in wanted))
