"""A worker's side of a run: take an assignment, send its part of the schedule, report, close the shard.

Locust carries the messages and keeps the process; its users are not the arrival process.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from pathlib import Path
from typing import Any

import gevent
import msgspec

from cliffwatch.errors import CliffwatchError
from loadgen import messages
from loadgen.accounting import WorkerReport
from loadgen.clock import MasterClock
from loadgen.locust_statistics import LocustStatistics
from loadgen.preparation import Assignment
from loadgen.shard import Shard

MASTER_SILENCE_S = 10.0
logger = logging.getLogger("cliffwatch.worker")


class Worker:
    """Listens to the master through a Locust runner.

    Attributes:
        newest: the shard that is being sent, or else was last; None before any.
    """

    def __init__(self, environment: Any, token_file: Path | None, *, exposed: bool = False) -> None:
        """`exposed`: this worker shows live metrics of its own."""
        self.newest: Shard | None = None
        self._exposed = exposed
        self._environment = environment
        self._runner = environment.runner
        self._token_file = token_file
        self._statistics = LocustStatistics(environment.stats)
        self._shard: Shard | None = None
        self._running: Any = None
        self._heard_s = time.monotonic()
        self._clock = MasterClock(self._runner)
        for kind, listener in (
            (messages.ASSIGN, self._on_assign),
            (messages.GO, self._on_go),
            (messages.STOP, self._on_stop),
        ):
            self._runner.register_message(kind, listener, concurrent=True)
        environment.events.report_to_master.add_listener(self._on_report)
        environment.events.heartbeat_received.add_listener(self._on_heartbeat)
        environment.events.quitting.add_listener(self._on_quitting)
        environment.events.test_stopping.add_listener(self._on_quitting)

    def report(self) -> WorkerReport | None:
        """Totals up to now; None while there is no run."""
        if self._shard is None:
            return None
        report = self._shard.report()
        self._statistics.show(report)
        return self._with_clock(report)

    def stop(self, drain_s: float | None = None) -> None:
        """End a run in progress, if any, and wait until its shard is closed. `drain_s`: as assigned unless given."""
        running = self._running
        if self._shard is not None and running is None:
            self._running = running = gevent.spawn(self._close_unstarted, self._shard)
        elif self._shard is not None:
            self._shard.stop(self._shard.drain_s if drain_s is None else drain_s)
        if running is not None and running is not gevent.getcurrent():
            running.join()

    def _on_assign(self, msg: Any, **_: object) -> None:
        refusal = None
        assignment: Assignment | None = None
        try:
            assignment = msgspec.convert(msg.data, Assignment)
            self._shard = self.newest = Shard(assignment, self._token_file, exposed=self._exposed)
        except (CliffwatchError, msgspec.ValidationError) as error:
            refusal = str(error)
        self._running = None
        self._clock.look()
        answer = {"host": platform.node(), "pid": os.getpid(), "refusal": refusal}
        if assignment is not None:
            answer |= {"run_id": assignment.run_id, "shard": assignment.shard}
        self._runner.send_message(messages.READY, answer)

    def _on_go(self, msg: Any, **_: object) -> None:
        if self._shard is not None and self._running is None:
            self._heard_s = time.monotonic()
            zero_ns = self._clock.begin(self._shard.run_id, int(msg.data["t0_ns"]), int(msg.data["t0_unix_ns"]))
            self._running = gevent.spawn(self._run, self._shard, zero_ns)

    def _on_stop(self, msg: Any, **_: object) -> None:
        gevent.spawn(self.stop, 0.0 if msg.data["now"] else None)

    def _run(self, shard: Shard, zero_ns: int) -> None:
        watch = gevent.spawn(self._watch_master, shard)
        try:
            report = shard.run(zero_ns)
            self._clock.look()
            self._finish(shard, report)
        finally:
            watch.kill(block=False)

    def _close_unstarted(self, shard: Shard) -> None:
        self._finish(shard, shard.close())

    def _finish(self, shard: Shard, report: WorkerReport) -> None:
        self._shard = None
        self._statistics.show(report)
        self._runner.send_message(messages.CLOSED, messages.plain(self._with_clock(report)))
        if shard.unclosed and hasattr(self._runner, "master_host"):
            gevent.spawn(self._runner.quit)  # the end of this process frees the journal for the master

    def _with_clock(self, report: WorkerReport) -> WorkerReport:
        return msgspec.structs.replace(report, clock=self._clock.reading())

    def _watch_master(self, shard: Shard) -> None:
        """Stop by ourselves when the master has gone: nobody else would."""
        if not hasattr(self._runner, "master_host"):
            return  # master and worker are one process
        while time.monotonic() - self._heard_s < MASTER_SILENCE_S:
            gevent.sleep(0.5)
        logger.error("the master has been silent for %g s: stopping; this worker's rows are kept", MASTER_SILENCE_S)
        shard.stop(0.0)
        if self._running is not None:
            self._running.join()
        self._runner.client.close(linger=0)
        self._runner.quit()

    def _on_heartbeat(self, **_: object) -> None:
        self._heard_s = time.monotonic()

    def _on_report(self, data: dict[str, Any], **_: object) -> None:
        report = self.report()
        if report is not None:
            data[messages.REPORT_KEY] = messages.plain(report)

    def _on_quitting(self, **_: object) -> None:
        self.stop()
