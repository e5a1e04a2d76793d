"""Every outcome, from a real socket: the server's bytes are written down, the client is the one that ships."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import gevent
import pytest
import trustme

from cliffwatch.records.schema import Outcome
from cliffwatch.stream import DIALECTS
from cliffwatch.stream.response import StreamResult
from loadgen.access import Access, request_bytes
from loadgen.answer import StreamSink
from loadgen.connection import Cancelled, Timeouts, Transfer
from loadgen.origin import Origin, tls_context
from loadgen.transport import Transport
from tests.loadgen.scripted import (
    ANSWER,
    END,
    STREAM_HEAD,
    Behaviour,
    chunk,
    event,
    say,
    serving,
    usage,
    whole,
)

SHORT = Timeouts(connect_s=1.0, first_token_s=0.4, stall_s=0.3, total_s=1.0)
ROOMY = Timeouts(connect_s=5.0, first_token_s=5.0, stall_s=5.0, total_s=5.0)


@pytest.fixture
def transports() -> Iterator[Callable[..., Transport]]:
    made: list[Transport] = []

    def make(
        port: int, timeouts: Timeouts = ROOMY, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> Transport:
        made.append(Transport(Access(Origin("https" if tls else "http", host, port), tls), timeouts))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


def ask(transport: Transport, batch: int = 1, max_tokens: int = 2) -> tuple[StreamResult, Transfer]:
    sink = StreamSink(DIALECTS["completions"], batch, max_tokens)
    transfer = transport.send(request_bytes(Access(Origin("http", "x", 80)), "POST", "/v1/completions", b"{}"), sink)
    return sink.result(transfer), transfer


def test_an_answer_is_stamped_counted_and_its_connection_reused(transports):
    with serving(say(ANSWER)) as server:
        transport = transports(server.port)
        for number in range(3):
            result, transfer = ask(transport)
            assert result.outcome is Outcome.OK
            assert (result.chunks, result.output_tokens, result.server_input_tokens) == (2, 2, 5)
            assert transfer.sent_ns <= result.first_token_ns <= result.last_token_ns <= transfer.ended_ns
            assert transfer.bytes_received == len(ANSWER)
            assert (transfer.connect_ns is not None) == (number == 0)
        assert server.connections == 1


def test_requests_at_once_have_a_connection_each_and_the_newest_is_reused_first(transports):
    def slow(sock: socket.socket, request: bytes) -> None:
        time.sleep(0.1)
        sock.sendall(ANSWER)

    with serving(slow) as server:
        transport = transports(server.port)
        jobs = [gevent.spawn(ask, transport) for _ in range(20)]
        gevent.joinall(jobs, raise_error=True)
        assert server.connections == 20
        assert {job.value[0].outcome for job in jobs} == {Outcome.OK}
        ask(transport)
        assert server.connections == 20


@pytest.mark.parametrize(
    ("answer", "outcome", "part"),
    [
        (whole("401 Unauthorized", b'{"error":{"message":"bad key"}}'), Outcome.HTTP_4XX, "bad key"),
        (whole("404 Not Found", b'{"error":{"message":"The model `x` does not exist."}}'), Outcome.HTTP_4XX, "model"),
        (whole("429 Too Many Requests", b"{}", "application/json", "retry-after: 7"), Outcome.HTTP_429, "after 7 s"),
        (whole("500 Internal Server Error", b"boom", "text/plain"), Outcome.HTTP_5XX, "boom"),
        (whole("200 OK", b"<html><title>Log in</title></html>", "text/html"), Outcome.PROTOCOL, "Log in"),
        (whole("204 No Content", b""), Outcome.PROTOCOL, "204"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Outcome.PROTOCOL, "not an HTTP/1.1 response"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, Outcome.PROTOCOL, "more than"),
        (STREAM_HEAD + chunk(b"data: {not json\n\n") + END, Outcome.PROTOCOL, ""),
        (
            STREAM_HEAD + event() + chunk(b'data: {"error":{"message":"engine died","code":500}}\n\n') + END,
            Outcome.STREAM_ERROR,
            "engine died",
        ),
        (STREAM_HEAD + END, Outcome.EMPTY, ""),
    ],
)
def test_what_servers_answer_has_an_outcome(transports, answer, outcome, part):
    with serving(say(answer)) as server:
        result, _ = ask(transports(server.port, Timeouts(5, 2, 2, 3)))
        assert result.outcome is outcome
        assert part in (result.error or "")


def test_a_whole_json_answer_is_read(transports):
    body = (
        b'{"choices":[{"index":0,"text":"a b","finish_reason":"length"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2}}'
    )
    with serving(say(whole("200 OK", body))) as server:
        result, _ = ask(transports(server.port))
        assert (result.outcome, result.first_token_ns, result.output_tokens) == (Outcome.OK, None, 2)
        assert result.last_token_ns is not None


@pytest.mark.parametrize(
    ("start", "outcome"),
    [
        (STREAM_HEAD + event() + event(), Outcome.TRUNCATED),
        (STREAM_HEAD + event()[:-20], Outcome.TRUNCATED),
        (b"", Outcome.TRUNCATED),
        (
            b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"choices":[{"text":"a"}]}\n\nda',
            Outcome.TRUNCATED,
        ),
    ],
)
def test_a_stream_that_is_cut_is_truncated(transports, start, outcome):
    with serving(say(start), keep_alive=False) as server:
        result, _ = ask(transports(server.port))
        assert result.outcome is outcome


def test_no_done_but_a_finish_reason_and_a_close_is_complete(transports):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    text = b'data: {"choices":[{"index":0,"text":" a","finish_reason":"length"}]}\n\n'
    with serving(say(head + text), keep_alive=False) as server:
        result, transfer = ask(transports(server.port), max_tokens=1)
        assert (result.outcome, transfer.clean) == (Outcome.OK, True)


def test_a_done_without_an_end_of_message_does_not_hang(transports):
    with serving(say(ANSWER.removesuffix(b"0\r\n\r\n"))) as server:
        started = time.monotonic()
        result, _ = ask(transports(server.port))
        assert result.outcome is Outcome.OK
        assert time.monotonic() - started < 4


def test_endless_silence_ends_at_the_first_token_limit(transports):
    with serving(lambda sock, request: time.sleep(3)) as server:
        result, transfer = ask(transports(server.port, SHORT))
        waited_s = (transfer.ended_ns - transfer.sent_ns) / 1e9
        assert result.outcome is Outcome.TIMEOUT_FIRST_TOKEN
        assert 0.4 <= waited_s < 0.7


def test_comments_and_empty_chunks_are_no_first_token(transports):
    def chatter(sock: socket.socket, request: bytes) -> None:
        sock.sendall(STREAM_HEAD)
        for _ in range(20):
            sock.sendall(chunk(b": keep-alive\n\n") + event(""))
            time.sleep(0.05)

    with serving(chatter) as server:
        result, _ = ask(transports(server.port, SHORT))
        assert result.outcome is Outcome.TIMEOUT_FIRST_TOKEN


def test_a_stream_that_stops_is_stalled_and_one_that_trickles_meets_the_total_limit(transports):
    def stop(sock: socket.socket, request: bytes) -> None:
        sock.sendall(STREAM_HEAD + event() + event())
        time.sleep(2)

    def trickle(sock: socket.socket, request: bytes) -> None:
        sock.sendall(STREAM_HEAD)
        for _ in range(30):
            sock.sendall(event())
            time.sleep(0.1)

    with serving(stop) as server:
        result, _ = ask(transports(server.port, SHORT))
        assert (result.outcome, result.chunks) == (Outcome.STALLED, 2)
    with serving(trickle) as server:
        result, transfer = ask(transports(server.port, SHORT), max_tokens=99)
        assert result.outcome is Outcome.TIMEOUT_TOTAL
        assert 1.0 <= (transfer.ended_ns - transfer.sent_ns) / 1e9 < 1.5


def test_a_limit_of_a_second_ends_what_is_silent_and_what_is_slow_each_by_its_own_name(transports):
    """The limit on silence and the limit on the whole are two: tokens every 0.4 s break the second only."""

    def slow(sock: socket.socket, request: bytes) -> None:
        sock.sendall(STREAM_HEAD)
        for _ in range(4):
            time.sleep(0.4)
            sock.sendall(event())
        sock.sendall(event(finish="length") + usage(5, 5) + END)

    limits = {"connect_s": 1.0, "first_token_s": 1.0, "stall_s": 1.0, "total_s": 10.0}
    with serving(lambda sock, request: time.sleep(3)) as silent, serving(slow) as server:
        cases = [
            gevent.spawn(ask, transports(port, Timeouts(**{**limits, **changes})), 1, 9)
            for port, changes in ((silent.port, {}), (server.port, {}), (server.port, {"total_s": 1.0}))
        ]
        gevent.joinall(cases, raise_error=True)
    (no_head, _), (in_time, _), (too_long, _) = (case.value for case in cases)
    assert no_head.outcome is Outcome.TIMEOUT_FIRST_TOKEN
    assert (in_time.outcome, in_time.chunks) == (Outcome.OK, 5)
    assert (too_long.outcome, too_long.chunks) == (Outcome.TIMEOUT_TOTAL, 2)
    for case in (cases[0], cases[2]):
        transfer = case.value[1]
        assert 1.0 <= (transfer.ended_ns - transfer.sent_ns) / 1e9 < 1.3


def test_a_refused_port_and_a_name_that_does_not_exist(transports):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result, transfer = ask(transports(port))
    assert (result.outcome, transfer.sent_ns) == (Outcome.CONNECT, None)
    assert "refused" in result.error
    result, _ = ask(transports(80, host="no-such-host.invalid"))
    assert result.outcome is Outcome.CONNECT
    assert "cannot be resolved" in result.error


def test_a_server_that_does_not_accept_runs_into_the_connect_limit(transports):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        full = [socket.socket() for _ in range(4)]
        for sock in full:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        time.sleep(0.1)
        result, transfer = ask(transports(listener.getsockname()[1], SHORT))
        for sock in full:
            sock.close()
    assert result.outcome is Outcome.TIMEOUT_CONNECT
    assert transfer.sent_ns is None


def test_a_connection_closed_while_idle_is_replaced_and_the_request_sent_once_more(transports):
    calls = []

    def close_after_first(sock: socket.socket, request: bytes) -> None:
        calls.append(request)
        if len(calls) == 2:  # the race: the request arrives, the server had decided to close
            sock.shutdown(socket.SHUT_RDWR)
        else:
            sock.sendall(ANSWER)

    with serving(close_after_first) as server:
        transport = transports(server.port)
        ask(transport)
        result, transfer = ask(transport)
        assert (result.outcome, transfer.resent, len(calls)) == (Outcome.OK, True, 3)


def test_an_idle_connection_that_the_server_closed_is_not_used(transports):
    with serving(say(ANSWER), keep_alive=False) as server:
        transport = transports(server.port)
        ask(transport)
        time.sleep(0.1)
        result, transfer = ask(transport)
        assert (result.outcome, transfer.resent) == (Outcome.OK, False)
        assert server.connections == 2


def test_bytes_after_the_answer_spoil_the_connection_not_the_answer(transports):
    with serving(say(ANSWER + b"HTTP/1.1 200 OK\r\n")) as server:
        transport = transports(server.port)
        assert [ask(transport)[0].outcome for _ in range(2)] == [Outcome.OK, Outcome.OK]
        assert server.connections == 2


def test_a_request_can_be_cancelled_wherever_it_is(transports):
    with serving(lambda sock, request: time.sleep(2)) as server:
        transport = transports(server.port)
        job = gevent.spawn(ask, transport)
        gevent.sleep(0.2)
        job.kill(Cancelled, block=False)
        job.join(timeout=2)
        result, transfer = job.value
        assert result.outcome is Outcome.CANCELLED
        assert transfer.sent_ns is not None


def test_a_100_continue_is_not_the_answer(transports):
    with serving(say(b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER)) as server:
        assert ask(transports(server.port))[0].outcome is Outcome.OK


def test_a_stream_cut_into_single_bytes_is_the_same(transports):
    answer = STREAM_HEAD + event(" ä") + event(" 🙂", finish="length") + usage(4, 2) + END

    def drip(sock: socket.socket, request: bytes) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in answer:
            sock.send(bytes([byte]))

    with serving(drip) as server:
        result, _ = ask(transports(server.port))
        assert (result.outcome, result.chunks, result.output_tokens) == (Outcome.OK, 2, 2)


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _server_context(authority: trustme.CA, *names: str, **options: object) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **options).configure_cert(context)
    return context


def _tls_ask(transports, authority: trustme.CA, context: ssl.SSLContext, *, trust: bool, behave: Behaviour):
    client = tls_context(Origin.parse("https://localhost"))
    if trust:
        authority.configure_trust(client)
    with serving(behave, tls=context) as server:
        transport = transports(server.port, ROOMY, client, "localhost")
        return [ask(transport) for _ in range(2)], server


def test_tls_with_a_trusted_certificate_streams_and_keeps_alive(transports, authority):
    big = STREAM_HEAD + b"".join(event("x" * 5000) for _ in range(50)) + event(finish="length") + usage(5, 51) + END
    answers, server = _tls_ask(
        transports, authority, _server_context(authority, "localhost"), trust=True, behave=say(big)
    )
    for result, _ in answers:
        assert (result.outcome, result.chunks) == (Outcome.OK, 51)
    assert server.connections == 1
    assert answers[0][1].connect_ns > 0


@pytest.mark.parametrize(
    ("names", "options", "trust", "part"),
    [
        (["wrong.example"], {}, True, "mismatch"),
        (["localhost"], {}, False, "certificate"),
        (["localhost"], {"not_after": datetime(2020, 1, 1)}, True, "expired"),  # noqa: DTZ001
    ],
)
def test_tls_that_cannot_be_verified_is_its_own_outcome(transports, authority, names, options, trust, part):
    context = _server_context(authority, *names, **options)
    answers, server = _tls_ask(transports, authority, context, trust=trust, behave=say(ANSWER))
    for result, transfer in answers:
        assert result.outcome is Outcome.TLS
        assert part in result.error
        assert transfer.sent_ns is None
    assert server.requests == []


def test_tls_to_a_plain_server_is_a_tls_failure(transports):
    with serving(say(ANSWER)) as server:
        result, _ = ask(transports(server.port, SHORT, tls_context(Origin.parse("https://localhost"))))
        assert result.outcome in {Outcome.TLS, Outcome.TIMEOUT_CONNECT}
