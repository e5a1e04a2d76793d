"""The HTTP face under good and bad clients: framing, limits, pipelining, noise, clients that leave or do not read."""

from __future__ import annotations

import asyncio
import random
from contextlib import closing

import pytest

from services.engine import http
from services.engine.http import MAX_BODY_BYTES, Connection
from tests.servers.processes import Server
from tests.services.engine.conftest import call, connect, exchange, metric, raw_request, read_all, wait_for

COMPLETIONS = "/v1/completions"
ONE = {"prompt": "a", "max_tokens": 1}


def alive(server: Server) -> bool:
    return call(server, "/health", b"", method="GET") == (200, None)


def test_a_connection_is_kept_for_the_next_request(engine: Server) -> None:
    with closing(connect(engine)) as connection:
        for _ in range(3):
            connection.sendall(raw_request(COMPLETIONS, {**ONE, "stream": True}))
            answer = b""
            while not answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"connection: close" not in answer


def test_a_request_may_come_byte_by_byte(engine: Server) -> None:
    with closing(connect(engine)) as connection:
        for byte in raw_request(COMPLETIONS, ONE, headers="connection: close\r\n"):
            connection.sendall(bytes([byte]))
        assert b'"completion_tokens":1' in read_all(connection)


def test_pipelined_requests_are_answered_in_order(engine: Server) -> None:
    bodies = [{"prompt": "a", "max_tokens": tokens, "stream": tokens % 2 == 0} for tokens in (3, 4, 1, 2)]
    data = b"".join(raw_request(COMPLETIONS, body, headers=f"x-request-id: r{i}\r\n") for i, body in enumerate(bodies))
    answer = exchange(engine, data + b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    heads = [part for part in answer.split(b"HTTP/1.1 200 OK\r\n") if part]
    assert len(heads) == 5
    assert all(f"x-request-id: r{i}".encode() in head for i, head in enumerate(heads[:4]))


def test_http_1_0_gets_a_bare_stream_that_ends_with_the_connection(engine: Server) -> None:
    data = raw_request(COMPLETIONS, {**ONE, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0")
    head, _, body = exchange(engine, data).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


def test_head_has_no_body(engine: Server) -> None:
    answer = exchange(engine, b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (head[:15], body) == (b"HTTP/1.1 200 OK", b"")
    assert b"content-length: 0" not in head


def test_an_upgrade_is_not_taken_up(engine: Server) -> None:
    answer = exchange(
        engine, b"GET /version HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\nPRI * HTTP/2"
    )
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_expect_continue(engine: Server) -> None:
    data = raw_request(COMPLETIONS, ONE, headers="expect: 100-continue\r\nconnection: close\r\n")
    assert exchange(engine, data).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),  # a TLS client
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n", 400),
        (b"GET /health HTTP/1.1\r\n" + b"x: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST /v1/completions HTTP/1.1\r\ncontent-length: %b\r\n\r\n" % (b"9" * 40), 400),
    ],
)
def test_what_is_not_a_request_is_refused_and_the_server_lives_on(engine: Server, data: bytes, status: int) -> None:
    answer = exchange(engine, data)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b'"error"' in answer
    assert alive(engine)


def test_a_chunked_body_over_the_limit_is_cut_off(engine: Server) -> None:
    with closing(connect(engine)) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(2 * MAX_BODY_BYTES // 0x100000):
                connection.sendall(chunk)
    assert alive(engine)


class Wire(asyncio.Transport):
    """A transport that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def test_a_request_that_trickles_in_does_not_extend_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"s": 1000.0}
    monkeypatch.setattr(http.time, "monotonic", lambda: clock["s"])
    connection = Connection(lambda *_: None, lambda *_: b"", set())
    connection.connection_made(Wire())
    connection.data_received(b"GET /health HTTP/1.1\r\n")
    for _ in range(80):
        clock["s"] += 1.0
        connection.data_received(b"x: y\r\n")
    assert connection.waits_longer_than(http.IDLE_S)
    connection.data_received(b"\r\n")
    assert not connection.waits_longer_than(http.IDLE_S)  # now the server owes an answer


def test_connections_beyond_the_limit_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 1)
    connections: set[Connection] = set()
    for expected in (b"", b"HTTP/1.1 503 Service Unavailable\r\n"):
        wire = Wire()
        Connection(lambda *_: None, lambda *_: b"{}", connections).connection_made(wire)
        assert wire.written.startswith(expected)
        assert wire.closed == bool(expected)
    assert len(connections) == 1


def test_noise_never_ends_the_server(engine: Server) -> None:
    """300 requests, each with a few bytes changed, dropped or doubled (seeded)."""
    dice = random.Random(7)
    valid = raw_request(COMPLETIONS, {**ONE, "stream": True}, headers="x-request-id: a\r\nconnection: close\r\n")
    for _ in range(300):
        data = bytearray(valid)
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(len(data))
            change = dice.randrange(3)
            if change == 0:
                data[place] = dice.randrange(256)
            elif change == 1:
                del data[place]
            else:
                data[place:place] = data[place : place + 9]
        with closing(connect(engine)) as connection:
            connection.sendall(data)
            connection.settimeout(0.05)  # some of them are a request that never ends
            try:
                connection.recv(65536)
            except (TimeoutError, ConnectionResetError):
                continue
    assert alive(engine)


def test_a_client_that_goes_away_frees_its_place(engine: Server) -> None:
    body = {"prompt": ["go away"] * 4, "max_tokens": 4000, "stream": True}
    finished = metric(engine, "vllm:request_success_total")
    with closing(connect(engine)) as connection:
        connection.sendall(raw_request(COMPLETIONS, body))
        connection.recv(65536)
        wait_for(lambda: metric(engine, "vllm:num_requests_running") == 4)
    wait_for(lambda: metric(engine, "vllm:num_requests_running") == 0, 2.0)
    assert metric(engine, "vllm:kv_cache_usage_perc") == 0
    # As in vLLM, a client that leaves is not counted as a finished request, not even as an abort.
    assert metric(engine, "vllm:request_success_total") == finished


def test_a_client_that_does_not_read_is_cut(engine: Server) -> None:
    body = {"prompt": ["slow"] * 512, "max_tokens": 4000, "stream": True}
    with closing(connect(engine)) as connection:
        connection.sendall(raw_request(COMPLETIONS, body))
        wait_for(lambda: metric(engine, "vllm:num_requests_running") > 0)
        wait_for(lambda: metric(engine, "vllm:num_requests_running") == 0, 30.0)
        assert not read_all(connection).endswith(b"0\r\n\r\n")
    assert metric(engine, "vllm:num_requests_waiting") == 0
