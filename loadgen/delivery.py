"""One logical request over one attempt or several: as it is, or tried again, or given up by its user as planned."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from time import monotonic_ns
from typing import Any, NamedTuple, Protocol

import gevent
import msgspec
from msgspec.structs import replace

from cliffwatch.records.schema import PLANNED, Outcome
from cliffwatch.stream.dialect import Reading
from cliffwatch.stream.response import StreamResult
from cliffwatch.workload.schedule import PlannedRequest
from cliffwatch.workload.spec import Workload
from loadgen.answer import StreamSink
from loadgen.connection import NS_PER_S, Cancelled, Sink, Transfer
from loadgen.conversation import reading_of


class Attempt(NamedTuple):
    """One try of several; instants in monotonic nanoseconds."""

    sent_ns: int | None
    ended_ns: int
    outcome: Outcome
    status: int | None
    connect_ns: int | None


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """How a logical request ended, told by its last attempt. `attempts` are all of them, where there were several.

    `reading` is what the last one's answer was read by, `headers` are that answer's, None where there was none.
    """

    transfer: Transfer
    result: StreamResult
    status: int | None
    reading: Reading
    attempts: tuple[Attempt, ...] = ()
    cancel_after_s: float | None = None
    headers: Mapping[str, str] | None = None


class Wire(Protocol):
    """Carries one request and its response."""

    def send(self, request: bytes, sink: Sink) -> Transfer: ...


class Courier(Protocol):
    """Sees one logical request through."""

    def deliver(self, plan: PlannedRequest, request: bytes) -> Delivery: ...


def courier_for(workload: Workload, wire: Wire) -> Courier:
    """The plainest courier that does what the workload asks."""
    if workload.retries is None and workload.cancellations is None:
        return Once(wire)
    return Persistent(workload, wire)


class Once:
    """Sends a request, whatever comes of it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def deliver(self, plan: PlannedRequest, request: bytes) -> Delivery:
        """See `Courier`."""
        reading = reading_of(plan)
        sink = StreamSink(reading, plan.batch, plan.output_tokens)
        transfer = self._wire.send(request, sink)
        return Delivery(transfer, sink.result(transfer), sink.status, reading, headers=sink.headers)


class _Left(Cancelled):
    message = PLANNED


class _BudgetSpent(Cancelled):
    outcome = Outcome.TIMEOUT_TOTAL
    message = "not finished within the budget of all attempts"


class _Alarm:
    """Ends the waiting of the greenlet that made it, once, so long after it was set."""

    def __init__(self, after_s: float, end: type[Cancelled]) -> None:
        self._after_s = after_s
        self._end = end
        self._greenlet: Any = gevent.getcurrent()
        self._timer: Any = None
        self.sink: Sink | None = None

    def set(self, spent_s: float = 0.0) -> None:
        """Begin to count, unless it does already; `spent_s` have passed."""
        if self._timer is None:
            self._timer = gevent.get_hub().loop.timer(max(0.0, self._after_s - spent_s))
            self._timer.start(self._ring)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.close()

    def _ring(self) -> None:
        if self.sink is None or not self.sink.done:  # else the answer is here, and only its HTTP end is not
            self._greenlet.throw(self._end())


class _WatchedSink(StreamSink):
    """Sets alarms when the request was sent and when its first token came."""

    def __init__(
        self, plan: PlannedRequest, reading: Reading, at_send: tuple[_Alarm, ...], at_first: tuple[_Alarm, ...]
    ) -> None:
        super().__init__(reading, plan.batch, plan.output_tokens)
        self._at_send = at_send
        self._at_first = at_first
        for alarm in (*at_send, *at_first):
            alarm.sink = self

    def sent(self) -> None:
        for alarm in self._at_send:
            alarm.set()

    def body(self, stamp_ns: int, data: bytes) -> None:
        super().body(stamp_ns, data)
        if self._at_first and self.started:
            for alarm in self._at_first:
                alarm.set()
            self._at_first = ()


class Persistent:
    """Tries again what the workload says, within one budget; its users may leave before the end."""

    def __init__(self, workload: Workload, wire: Wire) -> None:
        self._wire = wire
        self._seed = workload.seed
        self._retries = workload.retries
        self._cancellations = workload.cancellations
        budget_s = None if workload.retries is None else workload.retries.budget
        self._budget_s = workload.timeouts.total if budget_s is None else budget_s

    def deliver(self, plan: PlannedRequest, request: bytes) -> Delivery:
        """See `Courier`."""
        at_send: list[_Alarm] = []
        at_first: list[_Alarm] = []
        after_s = None
        if self._retries is not None:
            at_send.append(_Alarm(self._budget_s, _BudgetSpent))
        if self._cancellations is not None:
            after_s = self._cancellations.after_s(self._seed, plan.request_id)
        if after_s is not None and self._cancellations is not None:
            since = at_send if self._cancellations.since == "send" else at_first
            since.append(_Alarm(after_s, _Left))
        try:
            delivery = self._try(plan, request, tuple(at_send), tuple(at_first))
        finally:
            for alarm in (*at_send, *at_first):
                alarm.close()
        return replace(delivery, cancel_after_s=after_s)

    def _try(
        self, plan: PlannedRequest, request: bytes, at_send: tuple[_Alarm, ...], at_first: tuple[_Alarm, ...]
    ) -> Delivery:
        begun_ns = monotonic_ns()
        attempts: list[Attempt] = []
        while True:
            reading = reading_of(plan)  # of each attempt anew: only the last one's answer is heard
            sink = _WatchedSink(plan, reading, at_send, at_first)
            transfer = self._wire.send(request, sink)
            delivery = Delivery(transfer, sink.result(transfer), sink.status, reading, headers=sink.headers)
            attempts.append(_attempt(delivery))
            first_ns = attempts[0].sent_ns or begun_ns
            for alarm in at_send:  # a first attempt that could not be sent begins the time as well
                alarm.set((monotonic_ns() - first_ns) / NS_PER_S)
            wait_s = self._wait_s(plan.request_id, delivery, len(attempts), sink.retry_after_s)
            if wait_s is None or monotonic_ns() + wait_s * NS_PER_S >= first_ns + self._budget_s * NS_PER_S:
                break
            if (end := _pause(wait_s, at_send, at_first)) is not None:
                delivery = _given_up(delivery, end)
                break
        return delivery if len(attempts) == 1 else replace(delivery, attempts=tuple(attempts))

    def _wait_s(self, request_id: int, delivery: Delivery, failures: int, retry_after_s: float | None) -> float | None:
        """Seconds until the next attempt; None where there is to be none."""
        retries = self._retries
        if retries is None or not retries.covers(delivery.result.outcome, delivery.status):
            return None
        return retries.wait_s(self._seed, request_id, failures, retry_after_s)


def _pause(wait_s: float, *alarms: tuple[_Alarm, ...]) -> Cancelled | None:
    """Wait for the next attempt; what kept us from it, if anything did."""
    for alarm in chain.from_iterable(alarms):
        alarm.sink = None
    try:
        gevent.sleep(wait_s)
    except Cancelled as end:
        return end
    return None


def _given_up(last: Delivery, end: Cancelled) -> Delivery:
    """The end of a request that was to be tried again, and was not."""
    if end.outcome is not Outcome.CANCELLED:
        return last
    transfer = Transfer(monotonic_ns(), end.outcome, end.message, last.transfer.connect_ns, last.transfer.sent_ns)
    result = StreamResult(outcome=end.outcome, error=end.message)
    return Delivery(transfer, result, last.status, last.reading, headers=last.headers)


def _attempt(delivery: Delivery) -> Attempt:
    transfer = delivery.transfer
    return Attempt(transfer.sent_ns, transfer.ended_ns, delivery.result.outcome, delivery.status, transfer.connect_ns)
