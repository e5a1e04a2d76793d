"""The client's own error: what it measured of streams against what their server really did.

Streams go through the transport, the parser and the timing that a run's requests go through.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic_ns

import gevent
import numpy as np
from gevent.pool import Group

from cliffwatch.cli.processes import die_with_parent, end
from cliffwatch.errors import UnreachableError
from cliffwatch.records.calibration import Calibration, Error, Level
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.workload.plan import PlannedRequest
from cliffwatch.workload.spec import Workload
from loadgen.access import Access, request_bytes
from loadgen.answer import BodySink
from loadgen.connection import NS_PER_S, Timeouts
from loadgen.delivery import Delivery, Once
from loadgen.origin import Origin
from loadgen.shard import calm_collector
from loadgen.transport import Transport

IDLE_STREAMS = 10
MOST_STREAMS = 250  # the server's own core is full soon after
LEVEL_S = 3.0
TTFT_S, GAP_S, TOKENS = 0.05, 0.02, 10
STREAM_S = TTFT_S + GAP_S * (TOKENS - 1)
_ANSWER_S = 2.0  # how long a stream of an open loop is taken to last: nobody knows before the run
_MAX_TRUTH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Sample:
    """Errors of one stream, in seconds."""

    ttft_s: float
    gaps_s: list[float]


def streams_of(workload: Workload, workers: int) -> int:
    """How many streams one of `workers` workers is to have open: its users, or its rate times 2 s (at least 1)."""
    total = workload.users if workload.users is not None else (workload.rate or 0.0) * _ANSWER_S
    return max(1, round(total / max(1, workers)))


def calibrate(streams: int = IDLE_STREAMS, say: Callable[[str], None] = lambda _: None) -> Calibration:
    """Measure this host: idle, and with `streams` streams at a time where those are more, `MOST_STREAMS` at most. Takes
    about 3 s a level.

    Raises:
        UnreachableError: the server of known latency did not start, or not one stream of it was read to its end.
    """
    start_s = time.monotonic()
    plans = [("idle", IDLE_STREAMS)] + ([("load", streams)] if streams > IDLE_STREAMS else [])
    levels = []
    with _server() as port:
        for name, asked in plans:
            open_now = min(asked, MOST_STREAMS)
            say(f"calibrating: {name}, {open_now} streams for {LEVEL_S:g} s ...")
            levels.append(_level(port, name, open_now, asked))
    return Calibration(levels=tuple(levels), took_s=time.monotonic() - start_s)


def reach(found: Calibration) -> tuple[str, ...]:
    """In words, that a run's load is beyond what was measured; nothing where it is not."""
    own = found.own
    if own.streams >= own.asked_streams:
        return ()
    measured = f"the client's own bias was measured at {own.streams} streams, the most that a calibration opens"
    return (f"{measured}; a worker of this run may have {own.asked_streams} open, where it is not known",)


@contextmanager
def _server() -> Iterator[int]:
    command = [sys.executable, "-m", "loadgen.calibration.server", str(TTFT_S), str(GAP_S), str(TOKENS)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent
    )
    try:
        assert process.stdout is not None  # noqa: S101
        said = process.stdout.readline().strip()
        if not said.isdigit():
            raise UnreachableError("the server of known latency did not start; this host cannot be calibrated")
        yield int(said)
    finally:
        end(process)


def _level(port: int, name: str, streams: int, asked: int) -> Level:
    access = Access(Origin.parse(f"http://127.0.0.1:{port}"))
    transport = Transport(access, Timeouts())
    ended: dict[str, Delivery] = {}
    try:
        with calm_collector():
            cpu_s = time.process_time()
            _send(transport, access, streams, ended)
            cpu_s = time.process_time() - cpu_s
        truth = _truth(transport, access)
    finally:
        transport.close()
    samples = [found for key, one in ended.items() if (found := compare(one, truth.get(key, ()))) is not None]
    if not samples:
        raise UnreachableError("no stream of the server of known latency came to its end; this host was not calibrated")
    return Level(
        name=name,
        streams=streams,
        asked_streams=asked,
        gap_s=GAP_S,
        ttft=_error([one.ttft_s for one in samples]),
        itl=_error([abs(gap) for one in samples for gap in one.gaps_s]),
        core_s_per_chunk=cpu_s / sum(one.result.chunks for one in ended.values()),
    )


def _send(transport: Transport, access: Access, streams: int, ended: dict[str, Delivery]) -> None:
    """`streams` users, each one stream after another, their starts spread over the length of one."""
    until_ns = monotonic_ns() + round(LEVEL_S * NS_PER_S)
    courier = Once(transport)

    def user(number: int) -> None:
        gevent.sleep(STREAM_S * number / streams)
        turn = 0
        while monotonic_ns() + STREAM_S * NS_PER_S <= until_ns:
            key = f"{number}-{turn}"
            ended[key] = courier.deliver(_PLAN, request_bytes(access, "POST", "/v1/completions", request_id=key))
            turn += 1

    users = Group()
    for number in range(streams):
        users.spawn(user, number)
    users.join()


def _truth(transport: Transport, access: Access) -> dict[str, Sequence[int]]:
    sink = BodySink(_MAX_TRUTH_BYTES)
    transport.send(request_bytes(access, "GET", "/"), sink)
    truth: dict[str, Sequence[int]] = json.loads(bytes(sink.data))
    return truth


def compare(delivery: Delivery, instants: Sequence[int]) -> _Sample | None:
    """Measured minus written. `instants`: request read, then each write; None unless all were read."""
    result, sent_ns = delivery.result, delivery.transfer.sent_ns
    if result.outcome is not Outcome.OK or sent_ns is None or result.first_token_ns is None:
        return None
    gaps_us = result.chunk_gaps_us or []
    if len(gaps_us) != len(instants) - 2:
        return None
    ttft_ns = (result.first_token_ns - sent_ns) - (instants[1] - instants[0])
    gaps = zip(gaps_us, pairwise(instants[1:]), strict=True)
    return _Sample(ttft_ns / 1e9, [us / 1e6 - (later - earlier) / 1e9 for us, (earlier, later) in gaps])


def _error(values_s: Sequence[float]) -> Error:
    p50, p99 = np.quantile(values_s, (0.5, 0.99))
    return Error(n=len(values_s), p50_s=float(p50), p99_s=float(p99), max_s=max(values_s))


_PLAN = PlannedRequest(
    request_id=0,
    intended_ns=0,
    input_tokens=1,
    output_tokens=TOKENS,
    batch=1,
    cache="none",
    prefix_group=None,
    phase=Phase.MEASURED,
    endpoint="completions",
)
