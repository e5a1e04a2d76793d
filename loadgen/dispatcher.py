"""One worker's part of a run: every request at its time, whatever the server does.

Open loop: the schedule is absolute. A request is built before its time, waited for on the kernel's clock, and handed to
a greenlet of its own; what cannot be sent within the allowed lag is `late`, recorded and never dropped. Closed loop:
each user sends its next request when its last one ended and its pause is over.

In either, what is sent may be the first turn of a session: the next ones follow, each a pause after the answer before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic_ns
from typing import Protocol

import gevent
from gevent.event import Event
from gevent.pool import Group

from cliffwatch.errors import CliffwatchError
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.workload.closed import joining_start_ns, next_start_ns
from cliffwatch.workload.schedule import PlannedRequest, phase_at
from cliffwatch.workload.spec import ConcurrencyArrivals, Workload
from loadgen.accounting import Recorder
from loadgen.composer import Prepared
from loadgen.connection import NS_PER_S, Cancelled
from loadgen.lease import Lease
from loadgen.timer import make_timer

_LEASE_LOOK_S = 0.05


class Requests(Protocol):
    """Builds and sends single requests."""

    def prepare(self, planned: PlannedRequest) -> Prepared: ...

    def send(self, prepared: Prepared, *, intended_ns: int, phase: Phase, t0_ns: int) -> RequestRow: ...

    def following(self, request_id: int) -> Prepared | None: ...

    def unsent(
        self, prepared: Prepared, outcome: Outcome, error: str, *, intended_ns: int, now_ns: int
    ) -> RequestRow: ...


class Dispatcher:
    """Runs the requests of one shard.

    Attributes:
        failure: why this worker stopped issuing, where it had to (a full disk); else None.
        cut_short: whether it was stopped with requests still to send or in flight.
    """

    def __init__(
        self,
        workload: Workload,
        plans: Iterator[PlannedRequest],
        requests: Requests,
        recorder: Recorder,
        *,
        users: Sequence[int] = (),
        lease: Lease | None = None,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        """`users` of a closed loop are those to run here; nothing is issued beyond `lease` (None: never ends)."""
        self.failure: str | None = None
        self.cut_short = False
        self._workload = workload
        self._plans = plans
        self._requests = requests
        self._recorder = recorder
        self._users = users
        self._lease = lease or Lease()
        self._now_ns = now_ns
        self._t0_ns = 0
        self._stopping = Event()
        self._flights = Group()
        self._arrivals: gevent.Greenlet[[], None] | None = None
        self._flight: Callable[[Prepared, int, Phase], object] = (
            self._serve if workload.sessions is None else self._converse
        )

    def run(self, t0_ns: int) -> None:
        """Issue everything that is due from `t0_ns` (monotonic) on, and return when all of it has ended."""
        self._t0_ns = t0_ns
        self._arrivals = gevent.spawn(self._open_loop if self._workload.open_loop else self._closed_loop)
        self._arrivals.join()
        self._flights.join()
        if not self._arrivals.successful():
            self.failure = self.failure or f"the dispatcher failed: {self._arrivals.exception!r}"

    def cease(self) -> None:
        """Issue nothing from this moment on."""
        self._stopping.set()
        self.cut_short = self.cut_short or not self._arrivals or not self._arrivals.ready() or bool(self._flights)

    def stop(self, drain_s: float) -> None:
        """Issue nothing more; let requests in flight end for `drain_s`, then cancel them. Returns when all ended."""
        self.cease()
        if self._arrivals is not None:
            self._arrivals.kill()
        self._flights.join(timeout=drain_s)
        gevent.sleep(0)  # a greenlet that has not begun yet could not record its end
        self._flights.kill(Cancelled, block=True)

    def _open_loop(self) -> None:
        timer = make_timer()
        try:
            for planned in self._plans:
                if (prepared := self._prepare(planned)) is None:
                    return
                due_ns = self._t0_ns + planned.intended_ns
                if self._now_ns() >= due_ns:
                    timer.give_way()  # behind: answers that wait to be read come first
                timer.wait_until(due_ns)
                if self._stopping.is_set() or not self._issue(prepared, planned.intended_ns):
                    return
        finally:
            timer.close()

    def _issue(self, prepared: Prepared, intended_ns: int) -> bool:
        """Send a request in a greenlet of its own, or record it as late. False when nothing more may be issued."""
        if not self._record_issue(prepared.plan.request_id, intended_ns):
            return False
        if not self._too_late(prepared, intended_ns):
            self._flights.spawn(self._flight, prepared, intended_ns, prepared.plan.phase)
        return True

    def _too_late(self, prepared: Prepared, intended_ns: int) -> bool:
        """Whether a request is beyond the allowed lag, and so has ended without being sent."""
        elapsed_ns = self._now_ns() - self._t0_ns
        lag_s = (elapsed_ns - intended_ns) / NS_PER_S
        if lag_s <= self._workload.max_lag:
            return False
        message = f"{lag_s:.3g} s behind its time (allowed: {self._workload.max_lag:g} s)"
        self._record_end(
            self._requests.unsent(prepared, Outcome.LATE, message, intended_ns=intended_ns, now_ns=elapsed_ns)
        )
        return True

    def _converse(self, prepared: Prepared, intended_ns: int, phase: Phase) -> None:
        """A session from its first turn on, until it, its time or the run is over."""
        turn: Prepared | None = prepared
        while turn is not None:
            ended_ns = self._serve(turn, intended_ns, phase)
            turn = self._requests.following(turn.plan.request_id)
            if turn is None:
                return
            intended_ns = ended_ns + turn.plan.pause_ns
            if self._load_is_over(intended_ns) or not self._wait_and_issue(turn, intended_ns):
                return
            if self._too_late(turn, intended_ns):
                return
            phase = phase_at(self._workload, turn.plan.request_id, intended_ns)

    def _wait_and_issue(self, prepared: Prepared, intended_ns: int) -> bool:
        """Wait for a request's time; False when nothing more may be issued."""
        if (pause_ns := intended_ns + self._t0_ns - self._now_ns()) > 0:
            self._stopping.wait(pause_ns / NS_PER_S)
        return not self._stopping.is_set() and self._record_issue(prepared.plan.request_id, intended_ns)

    def _load_is_over(self, intended_ns: int) -> bool:
        end_s = self._workload.duration
        return end_s is not None and intended_ns >= round(end_s * NS_PER_S)

    def _closed_loop(self) -> None:
        arrivals = self._workload.arrivals
        assert isinstance(arrivals, ConcurrencyArrivals)  # noqa: S101
        timer = make_timer()
        try:
            timer.wait_until(self._t0_ns)
        finally:
            timer.close()
        for user in self._users:
            self._flights.spawn(self._user, arrivals, user)

    def _user(self, arrivals: ConcurrencyArrivals, user: int) -> None:
        """One user of a closed loop: a request, a pause, the next request, until time or the plans run out."""
        workload = self._workload
        due_ns = joining_start_ns(arrivals, user, self._now_ns() - self._t0_ns)
        for done, planned in enumerate(self._plans, 1):
            if (prepared := self._prepare(planned)) is None:
                return
            intended_ns = max(due_ns, self._now_ns() - self._t0_ns)
            if self._load_is_over(intended_ns) or not self._wait_and_issue(prepared, intended_ns):
                return
            self._flight(prepared, intended_ns, phase_at(workload, planned.request_id, intended_ns))
            ended_ns = self._now_ns() - self._t0_ns
            due_ns = next_start_ns(arrivals, workload.seed, user, done, started_ns=intended_ns, ended_ns=ended_ns)

    def _prepare(self, planned: PlannedRequest) -> Prepared | None:
        try:
            return self._requests.prepare(planned)
        except CliffwatchError as error:
            self._give_up(error)
            return None

    def _serve(self, prepared: Prepared, intended_ns: int, phase: Phase) -> int:
        """Send one request and record its end; returns when that was."""
        row = self._requests.send(prepared, intended_ns=intended_ns, phase=phase, t0_ns=self._t0_ns)
        self._record_end(row)
        return self._now_ns() - self._t0_ns if row.ended_ns is None else row.ended_ns

    def _record_issue(self, request_id: int, intended_ns: int) -> bool:
        """Leave to send, on record. The lease is looked at again after that: what was recorded while it ran out, and
        is not sent now, is known to the master; what it did not find recorded is sent by others only."""
        if self._now_ns() >= self._lease.until_ns and not self._hold():
            return False
        try:
            self._recorder.issued(request_id, intended_ns)
        except CliffwatchError as error:
            self._give_up(error)
            return False
        return self._now_ns() < self._lease.until_ns or self._hold()

    def _hold(self) -> bool:
        """Issue nothing until the master has been heard again. False when told to stop instead."""
        while not self._stopping.wait(_LEASE_LOOK_S):
            if self._now_ns() < self._lease.until_ns:
                return True
        return False

    def _record_end(self, row: RequestRow) -> None:
        try:
            self._recorder.ended(row)
        except CliffwatchError as error:
            self._give_up(error)

    def _give_up(self, error: CliffwatchError) -> None:
        self.failure = self.failure or str(error)
        self._stopping.set()
