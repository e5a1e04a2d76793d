"""Retries and planned cancellations, from a workload's words to the row, over real sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate

import gevent
import pytest

from cliffwatch.records.schema import PLANNED, Outcome, Phase, RequestRow
from cliffwatch.workload.prompts import Built
from cliffwatch.workload.schedule import PlannedRequest
from cliffwatch.workload.spec import Workload
from loadgen.access import Access
from loadgen.composer import Composer, ServedModel
from loadgen.connection import Cancelled, Timeouts
from loadgen.delivery import courier_for
from loadgen.origin import Origin
from loadgen.sender import Sender
from loadgen.transport import Transport
from tests.loadgen.scripted import ANSWER, END, STREAM_HEAD, Behaviour, Served, event, say, serving, usage, whole

ROOMY = Timeouts(connect_s=5.0, first_token_s=5.0, stall_s=5.0, total_s=5.0)


class OnePrompt:
    def build(self, plan: PlannedRequest) -> Built:
        return Built(prompts=("a",) * plan.batch, built_input_tokens=plan.batch)


def workload(**changes: object) -> Workload:
    return Workload.model_validate({"duration": 60, "arrivals": {"kind": "constant", "rate": 10}, **changes})


Send = Callable[..., RequestRow]


@contextmanager
def client(port: int, spec: Workload, timeouts: Timeouts = ROOMY) -> Iterator[Send]:
    """Sends request number so and so; the row's times count from the call."""
    access = Access(Origin("http", "127.0.0.1", port))
    transport = Transport(access, timeouts)
    composer = Composer(access=access, models={"m": ServedModel(OnePrompt())}, sampling={}, run_id="r")
    sender = Sender(courier=courier_for(spec, transport), composer=composer, worker=0)

    def send(request_id: int = 0) -> RequestRow:
        plan = PlannedRequest(
            request_id=request_id, intended_ns=0, input_tokens=1, output_tokens=99, batch=1, cache="none",
            prefix_group=None, phase=Phase.MEASURED, endpoint="completions",
        )  # fmt: skip
        return sender.send(sender.prepare(plan), intended_ns=0, phase=Phase.MEASURED, t0_ns=time.monotonic_ns())

    try:
        yield send
    finally:
        transport.close()


def refusal(status: str, retry_after: object = None) -> bytes:
    headers = () if retry_after is None else (f"retry-after: {retry_after}",)
    return whole(status, b'{"error":{"message":"busy"}}', "application/json", *headers)


BUSY = "429 Too Many Requests"
UNAVAILABLE = "503 Service Unavailable"


def in_turn(*answers: bytes) -> Behaviour:
    """Each answer once, the last one for ever."""
    left = list(answers)
    return lambda sock, _: sock.sendall(left.pop(0) if len(left) > 1 else left[0])


def after(seconds: float, answer: bytes) -> Behaviour:
    def behave(sock: socket.socket, _: bytes) -> None:
        time.sleep(seconds)
        sock.sendall(answer)

    return behave


def seconds(start_ns: int | None, end_ns: int | None) -> float:
    assert start_ns is not None and end_ns is not None
    return (end_ns - start_ns) / 1e9


# retries


def test_without_the_words_nothing_is_tried_again():
    with serving(say(refusal(BUSY, 0.01))) as server, client(server.port, workload()) as send:
        row = send()
        assert (row.outcome, row.attempts, row.attempt_sent_ns, len(server.requests)) == (Outcome.HTTP_429, 1, None, 1)


def test_a_throttled_request_is_one_row_that_keeps_service_and_total_time_apart():
    calls: list[bytes] = []

    def behave(sock: socket.socket, request: bytes) -> None:
        calls.append(request)
        if len(calls) < 3:
            sock.sendall(refusal(BUSY, 0.2))
        else:
            after(0.1, ANSWER)(sock, request)

    with serving(behave) as server, client(server.port, workload(retries={"budget": "10s"})) as send:
        row = send()
    assert (row.outcome, row.status, row.attempts) == (Outcome.OK, 200, 3)
    assert row.attempt_outcomes == [Outcome.HTTP_429, Outcome.HTTP_429, Outcome.OK]
    assert row.attempt_statuses == [429, 429, 200]
    assert row.attempt_sent_ns is not None and row.attempt_ended_ns is not None
    assert row.attempt_sent_ns == sorted(row.attempt_sent_ns) and row.attempt_sent_ns[2] == row.sent_ns
    assert row.attempt_ended_ns[2] == row.ended_ns
    assert 0.1 <= seconds(row.sent_ns, row.last_token_ns) < 0.25
    assert 0.5 <= seconds(row.first_sent_ns, row.last_token_ns) < 0.75
    assert row.connect_ns is not None  # the first attempt's, which is what the send lag holds


def test_what_is_refused_for_ever_ends_as_one_failure_within_the_budget():
    spec = workload(retries={"attempts": 100, "budget": "500ms"})
    with serving(say(refusal(BUSY, 0.2))) as server, client(server.port, spec) as send:
        row = send()
    assert (row.outcome, row.status, row.attempts) == (Outcome.HTTP_429, 429, 3)
    assert seconds(0, row.ended_ns) < 0.5
    assert row.error == "HTTP 429: busy (retry after 0.2 s)"


def test_a_wait_that_would_pass_the_budget_ends_it_at_once():
    with (
        serving(say(refusal(UNAVAILABLE, 3600))) as server,
        client(server.port, workload(retries={"budget": "30s"})) as send,
    ):
        row = send()
    assert (row.outcome, row.attempts) == (Outcome.HTTP_5XX, 1)
    assert seconds(0, row.ended_ns) < 1


@pytest.mark.parametrize(("from_now_s", "attempts"), [(-5, 2), (60, 1)])
def test_retry_after_may_be_a_date(from_now_s, attempts):
    """One that has passed is waited for no longer; one beyond the budget not at all."""
    when = formatdate(time.time() + from_now_s, usegmt=True)
    spec = workload(retries={"budget": "40s", "backoff": {"base": "30s"}})
    with serving(in_turn(refusal(UNAVAILABLE, when), ANSWER)) as server, client(server.port, spec) as send:
        row = send()
    assert (row.outcome is Outcome.OK, row.attempts) == (attempts == 2, attempts)
    assert seconds(0, row.ended_ns) < 1


def test_an_attempt_in_flight_ends_when_the_budget_does():
    def hang(sock: socket.socket, _: bytes) -> None:
        sock.sendall(STREAM_HEAD + event())
        time.sleep(2)

    with serving(hang) as server, client(server.port, workload(retries={"budget": "300ms"})) as send:
        row = send()
    assert (row.outcome, row.attempts, row.chunks) == (Outcome.TIMEOUT_TOTAL, 1, 1)
    assert "budget" in (row.error or "")
    assert 0.3 <= seconds(row.sent_ns, row.ended_ns) < 0.6


@pytest.mark.parametrize(
    ("on", "answer", "attempts"),
    [
        (["http_429"], refusal(UNAVAILABLE), 1),
        (["http_503"], refusal(UNAVAILABLE), 2),
        (["http_503"], refusal("500 Internal Server Error"), 1),
        (["http_5xx"], refusal("500 Internal Server Error"), 2),
        (["http_5xx", "http_429"], refusal("400 Bad Request"), 1),
        (["http_429", "http_503"], STREAM_HEAD + END, 1),
    ],
)
def test_only_what_is_named_is_tried_again(on, answer, attempts):
    spec = workload(retries={"attempts": 2, "on": on, "backoff": {"base": "1ms"}})
    with serving(say(answer)) as server, client(server.port, spec) as send:
        assert send().attempts == len(server.requests) == attempts


def test_a_refused_connection_is_tried_again_and_its_first_send_is_unknown():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    spec = workload(retries={"attempts": 3, "backoff": {"base": "20ms", "jitter": 0}})
    with client(port, spec) as send:
        row = send()
    assert (row.outcome, row.attempts, row.attempt_sent_ns) == (Outcome.CONNECT, 3, [None, None, None])
    assert (row.sent_ns, row.first_sent_ns) == (None, None)
    assert seconds(0, row.ended_ns) >= 0.06  # 20 and 40 ms


def test_stopping_the_run_ends_a_wait_between_attempts():
    with serving(say(refusal(BUSY, 5))) as server, client(server.port, workload(retries={})) as send:
        job = gevent.spawn(send)
        gevent.sleep(0.8)  # by then the refusal is here, and the wait of 5 s has begun
        job.kill(Cancelled, block=False)
        job.join(timeout=10)
    assert (job.value.outcome, job.value.error) == (Outcome.CANCELLED, "the run was stopped")
    assert (job.value.attempts, job.value.status) == (1, 429)
    assert job.value.sent_ns is not None


# cancellations


@contextmanager
def streaming(tokens: int, gap_s: float = 0.05) -> Iterator[tuple[Served, list[float]]]:
    """A server that streams, and notes how long each client stayed."""
    stayed: list[float] = []

    def behave(sock: socket.socket, _: bytes) -> None:
        began = time.monotonic()
        try:
            sock.sendall(STREAM_HEAD)
            for _number in range(tokens):
                time.sleep(gap_s)
                sock.sendall(event())
            sock.sendall(event(finish="length") + usage(1, tokens + 1) + END)
        finally:
            stayed.append(time.monotonic() - began)

    with serving(behave) as server:
        yield server, stayed


def leaving(after_s: float, since: str, **changes: object) -> Workload:
    words = {"share": 1, "after": {"kind": "fixed", "value": after_s}, "since": since}
    return workload(cancellations=words, **changes)


@pytest.mark.parametrize(("since", "chunks"), [("send", (4, 6)), ("first_token", (5, 7))])
def test_a_user_leaves_as_planned_and_what_came_until_then_is_kept(since, chunks):
    with streaming(40) as (server, stayed), client(server.port, leaving(0.27, since)) as send:
        row = send()
        assert (row.outcome, row.error, row.cancel_after_s, row.attempts) == (Outcome.CANCELLED, PLANNED, 0.27, 1)
        start_ns = row.sent_ns if since == "send" else row.first_token_ns
        assert 0.26 <= seconds(start_ns, row.ended_ns) < 0.4
        assert chunks[0] <= row.chunks <= chunks[1] and row.output_tokens == row.chunks
        assert row.bytes_received > 0
        gevent.sleep(0.2)
    assert stayed and stayed[0] < 1  # the server saw the connection close


def test_an_answer_that_ends_sooner_is_ok_and_its_connection_stays():
    with streaming(2, 0.01) as (server, _), client(server.port, leaving(5, "first_token")) as send:
        rows = [send(number) for number in range(3)]
        assert [(row.outcome, row.cancel_after_s) for row in rows] == [(Outcome.OK, 5.0)] * 3
        assert server.connections == 1


def test_a_complete_answer_whose_message_has_no_end_is_not_cancelled():
    head = STREAM_HEAD + event(finish="length") + usage(1, 1)
    answer = head + END.removesuffix(b"0\r\n\r\n")
    with serving(say(answer)) as server, client(server.port, leaving(0.2, "send")) as send:
        assert send().outcome is Outcome.OK


def test_a_user_may_leave_while_waiting_for_the_next_attempt():
    spec = leaving(0.2, "send", retries={})
    with serving(say(refusal(BUSY, 2))) as server, client(server.port, spec) as send:
        row = send()
    assert (row.outcome, row.error, row.status) == (Outcome.CANCELLED, PLANNED, 429)
    assert 0.2 <= seconds(row.sent_ns, row.ended_ns) < 0.4


def test_a_stopped_run_is_told_from_a_user_who_left():
    with streaming(40) as (server, _), client(server.port, leaving(5, "send")) as send:
        job = gevent.spawn(send)
        gevent.sleep(0.2)
        job.kill(Cancelled, block=False)
        job.join(timeout=2)
    assert (job.value.outcome, job.value.error) == (Outcome.CANCELLED, "the run was stopped")


def test_only_the_drawn_share_leaves_and_the_others_never_set_a_clock():
    spec = workload(cancellations={"share": 0.5, "since": "send", "after": {"kind": "fixed", "value": 0}})
    assert spec.cancellations is not None
    with streaming(1, 0.01) as (server, _), client(server.port, spec) as send:
        rows = [send(number) for number in range(20)]
    drawn = [spec.cancellations.after_s(spec.seed, number) for number in range(20)]
    assert [row.cancel_after_s for row in rows] == drawn
    assert {row.outcome for row in rows if row.cancel_after_s is None} == {Outcome.OK}
    assert 3 <= sum(at is None for at in drawn) <= 17
