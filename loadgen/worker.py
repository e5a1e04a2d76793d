"""A worker's side of a run: take parts of the schedule, send them, report, close their shards.

Locust carries the messages and keeps the process; its users are not the arrival process. A worker says every `BEAT_S`
that it lives and what it holds; the answer renews its lease and says which of its parts others have taken over.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gevent
import msgspec

from cliffwatch.errors import CliffwatchError
from loadgen import messages
from loadgen.accounting import WorkerReport
from loadgen.clock import MasterClock
from loadgen.identity import SecretFiles
from loadgen.lease import BEAT_S, MASTER_SILENCE_S, Lease, Pulse
from loadgen.locust_statistics import LocustStatistics
from loadgen.preparation import Assignment
from loadgen.shard import Shard, calm_collector
from loadgen.shipping import Shipper

logger = logging.getLogger("cliffwatch.worker")


class Worker:
    """Listens to the master through a Locust runner.

    Attributes:
        had: the shards of the newest run that this worker has or had; none before any.
    """

    def __init__(self, environment: Any, secrets: SecretFiles, *, exposed: bool = False) -> None:
        """`exposed`: this worker shows live metrics of its own."""
        self.had: list[Shard] = []
        self._exposed = exposed
        self._environment = environment
        self._runner = environment.runner
        self._secrets = secrets
        self._run_id: str | None = None
        self._statistics: dict[int, LocustStatistics] = {}
        self._clock = MasterClock(self._runner)
        self._shards: dict[int, Shard] = {}
        self._taking: set[int] = set()  # parts that were given to us and are not ready yet
        self._drains_s: dict[int, float] = {}  # of parts that were told to stop
        self._running: dict[int, gevent.Greenlet[..., Any]] = {}
        self._closed: dict[int, WorkerReport] = {}  # of this run: the master may have to be told again
        self._calm = ExitStack()
        self._pulse = Pulse()
        self._leaving = False
        self._shippers: dict[int, Shipper] = {}
        remote = hasattr(self._runner, "master_host")  # else master and worker are one process
        self._lease = Lease(0) if remote else Lease()
        self._next_beat_s = 0.0
        for kind, listener in (
            (messages.ASSIGN, self._on_assign),
            (messages.GO, self._on_go),
            (messages.STOP, self._on_stop),
            (messages.RENEWAL, self._on_renewal),
            (messages.STANDBY, self._on_standby),
            (messages.ARRIVED, self._on_arrived),
        ):
            self._runner.register_message(kind, listener, concurrent=True)
        environment.events.report_to_master.add_listener(self._on_report)
        environment.events.heartbeat_received.add_listener(self._on_heartbeat)
        environment.events.quitting.add_listener(self._on_quitting)
        environment.events.test_stopping.add_listener(self._on_quitting)
        gevent.spawn(self._pulse.run, self._on_tick if remote else lambda _: None)

    def reports(self) -> list[WorkerReport]:
        """Totals up to now, of each part at hand."""
        return [self._completed(_with(self._pulse.longest, shard.report())) for shard in self._shards.values()]

    def stop(self, drain_s: float | None = None) -> None:
        """End all parts, if any, and wait until their shards are closed. `drain_s`: as assigned unless given."""
        gevent.joinall([gevent.spawn(self._stop_shard, shard, drain_s) for shard in list(self._shards.values())])
        gevent.joinall(list(self._running.values()))

    def _stop_shard(self, shard: Shard, drain_s: float | None) -> None:
        drain_s = shard.drain_s if drain_s is None else drain_s
        running = self._running.get(shard.number)
        if running is None:
            running = self._spawn(shard, self._close_unstarted, shard)
        elif drain_s < self._drains_s.get(shard.number, math.inf):  # to be told the same again changes nothing
            self._drains_s[shard.number] = drain_s
            shard.stop(drain_s)
        running.join()

    # what the master says

    def _on_assign(self, msg: Any, **_: object) -> None:
        assignment = messages.read(msg.data, Assignment)
        if assignment is None:
            logger.error("the master is of another version: its assignment cannot be read")
            return
        if assignment.run_id != self._run_id:
            self._run_id, self.had, self._statistics, self._closed = assignment.run_id, [], {}, {}
            self._drains_s = {}
            self._pulse.forget()
        if assignment.shard in {*self._shards, *self._taking, *self._closed}:
            return  # given once more: our next beat says that we have it
        refusal = self._take(assignment)
        self._clock.look()
        self._beat()  # the lease is renewed by the time that the part begins
        self._say_ready(assignment.run_id, assignment.shard, refusal)

    def _take(self, assignment: Assignment) -> str | None:
        """Be ready to send a part, or say why not."""
        self._taking.add(assignment.shard)
        try:
            shard = Shard(assignment, self._secrets, self._lease, exposed=self._exposed)
        except CliffwatchError as error:
            return str(error)
        finally:
            self._taking.discard(assignment.shard)
        self._shards[shard.number] = shard
        self.had.append(shard)
        return None

    def _on_go(self, msg: Any, **_: object) -> None:
        go = messages.read(msg.data, messages.Go)
        shard = None if go is None else self._shards.get(go.shard)
        if go is not None and shard is not None and shard.run_id == go.run_id and go.shard not in self._running:
            self._pulse.heard()
            zero_ns = self._clock.begin(go.run_id, go.t0_ns, go.t0_unix_ns)
            self._spawn(shard, self._run, shard, zero_ns)

    def _on_stop(self, msg: Any, **_: object) -> None:
        stop = messages.read(msg.data, messages.Stop)
        if stop is not None:
            gevent.spawn(self.stop, 0.0 if stop.now else None)

    def _on_renewal(self, msg: Any, **_: object) -> None:
        renewal = messages.read(msg.data, messages.Renewal)
        if renewal is None:
            return
        self._pulse.heard()
        for shard in list(self._shards.values()):
            if shard.run_id == renewal.run_id and shard.number in renewal.asked and shard.number not in renewal.held:
                logger.warning("part %d is no longer this worker's: it was silent for too long", shard.number)
                shard.cease()  # before the lease is renewed
                gevent.spawn(self._stop_shard, shard, 0.0)
        self._lease.renew(renewal.sent_ns)
        for number in renewal.unheard:
            if renewal.run_id == self._run_id and number in self._closed:
                self._runner.send_message(messages.CLOSED, messages.plain(self._closed[number]))

    def _on_standby(self, msg: Any, **_: object) -> None:
        standby = messages.read(msg.data, messages.Standby)
        if standby is not None:
            logger.warning(standby.text)

    def _on_arrived(self, msg: Any, **_: object) -> None:
        arrived = messages.read(msg.data, messages.Arrived)
        if arrived is not None and arrived.shard in self._shippers:
            self._shippers[arrived.shard].on_arrived(arrived)

    def _on_heartbeat(self, **_: object) -> None:
        self._pulse.heard()

    # what the worker does and says

    def _spawn(self, shard: Shard, job: Callable[..., None], *arguments: object) -> gevent.Greenlet[..., Any]:
        """Begin what ends with the shard being closed."""
        self._running[shard.number] = running = gevent.spawn(job, *arguments)
        running.link_exception(self._on_broken)
        return running

    def _on_broken(self, running: gevent.Greenlet[..., Any]) -> None:
        """A part that can neither go on nor be closed: the end of this process tells the master, which would wait."""
        logger.error("a part could not be closed: %r; this worker ends", running.exception)
        self._running = {number: other for number, other in self._running.items() if other is not running}
        self._shards = {number: shard for number, shard in self._shards.items() if number in self._running}
        if hasattr(self._runner, "master_host"):
            gevent.spawn(self._runner.quit)

    def _run(self, shard: Shard, zero_ns: int) -> None:
        if len(self._running) == 1:
            self._calm.enter_context(calm_collector())
        shard.run(zero_ns)
        self._pulse.tick()
        pause = self._pulse.longest  # before the shard is folded: that holds the loop up, but no request
        report = _with(pause, shard.close())
        self._shards.pop(shard.number, None)  # no report of it may come after this one, its last
        self._clock.look()
        self._finish(shard, report)

    def _close_unstarted(self, shard: Shard) -> None:
        self._finish(shard, shard.close())

    def _finish(self, shard: Shard, report: WorkerReport) -> None:
        report = self._completed(report)
        if shard.ships and not shard.unclosed:
            report = self._ship(shard, report)
        self._shards.pop(shard.number, None)
        self._running.pop(shard.number, None)
        if not self._running:
            self._calm.close()
        self._closed[shard.number] = report
        self._runner.send_message(messages.CLOSED, messages.plain(report))
        if shard.unclosed and hasattr(self._runner, "master_host"):
            gevent.spawn(self._runner.quit)  # the end of this process frees the journal for the master

    def _ship(self, shard: Shard, report: WorkerReport) -> WorkerReport:
        """Bring a shard to the master, before it is told that it is closed."""

        def shipper(path: Path) -> Shipper:
            send = lambda piece: self._runner.send_message(messages.PIECE, messages.plain(piece))  # noqa: E731
            self._shippers[shard.number] = Shipper(path, shard.run_id, shard.number, send)
            return self._shippers[shard.number]

        try:
            shard.ship(shipper)
        except CliffwatchError as error:
            logger.error(str(error))  # noqa: TRY400  it says all there is to say
            return msgspec.structs.replace(report, failure=str(error))
        finally:
            self._shippers.pop(shard.number, None)
        return report

    def _completed(self, report: WorkerReport) -> WorkerReport:
        """A part's report with what is known of the clock; it is shown in Locust's books as well."""
        self._statistics.setdefault(report.shard, LocustStatistics(self._environment.stats)).show(report)
        return msgspec.structs.replace(report, clock=self._clock.reading())

    def _on_tick(self, _awake_s: float) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_beat_s:
            self._next_beat_s = now_s + BEAT_S
            self._beat()
            for shard in list(self._shards.values()):
                if shard.number not in self._running:
                    self._say_ready(shard.run_id, shard.number)  # until we are sent off
        if self._pulse.silence_s > MASTER_SILENCE_S and self._shards and not self._leaving:
            self._leaving = True
            gevent.spawn(self._leave)

    def _say_ready(self, run_id: str, number: int, refusal: str | None = None) -> None:
        held = self._shards.get(number)
        ready = messages.Ready(
            run_id=run_id,
            shard=number,
            host=platform.node(),
            pid=os.getpid(),
            refusal=refusal,
            ships=held is not None and held.ships,
        )
        self._runner.send_message(messages.READY, messages.plain(ready))

    def _beat(self) -> None:
        if not hasattr(self._runner, "master_host"):
            return
        beat = messages.Beat(
            run_id=self._run_id,
            shards=sorted({*self._shards, *self._taking}),
            host=platform.node(),
            pid=os.getpid(),
            sent_ns=time.monotonic_ns(),
            closed=sorted(self._closed),
        )
        self._runner.send_message(messages.BEAT, messages.plain(beat))

    def _leave(self) -> None:
        """Stop by ourselves when the master has gone: nobody else would."""
        logger.error("the master has been silent for %g s: stopping; this worker's rows are kept", MASTER_SILENCE_S)
        self.stop(0.0)
        self._runner.quit()

    def _on_report(self, data: dict[str, Any], **_: object) -> None:
        data[messages.REPORT_KEY] = [messages.plain(report) for report in self.reports()]

    def _on_quitting(self, **_: object) -> None:
        self.stop()


def _with(pause: tuple[float, int], report: WorkerReport) -> WorkerReport:
    """The report with the longest standstill, as `Pulse.longest` has it."""
    return msgspec.structs.replace(report, pause_s=pause[0], pause_began_unix_ns=pause[1])
