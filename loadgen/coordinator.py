"""The master's side of a run: assign shards, start, watch, stop, and close the run whatever became of the workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent
import gevent.event

from cliffwatch.errors import CliffwatchError, RunError
from cliffwatch.records.counted import MergedCounts
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import Manifest, RunState, WorkerInfo, write_manifest
from cliffwatch.workload.schedule import schedule
from loadgen import messages
from loadgen.accounting import Board, Totals
from loadgen.closing import Plans, unclosed
from loadgen.metrics.recount import recount
from loadgen.preparation import Preparation

READY_WITHIN_S = 60.0
CLOSE_MARGIN_S = 30.0  # to fold a large shard, after the drain
SILENT_S = 15.0  # without a word from a worker that Locust misses, it counts as dead
_START_DELAY_S = 0.3
_TICK_S = 0.1
_CLOSE_ATTEMPTS = 5
logger = logging.getLogger("cliffwatch")


@dataclass(slots=True)
class Member:
    """A worker that takes part in the run."""

    client_id: str
    shard: int
    host: str | None = None
    pid: int | None = None
    ready: bool = False
    refusal: str | None = None
    closed: bool = False
    cut_short: bool = False  # closed before its part was done
    dead: bool = False
    missed_since_s: float | None = None

    @property
    def over(self) -> bool:
        return self.closed or self.dead


class Coordinator:
    """Conducts one run over the workers of a Locust runner.

    Attributes:
        manifest: of the closed run; None until then.
        error: why there is no closed run, where there is none.
        preparation: what the run was made from.
    """

    def __init__(
        self,
        runner: Any,
        preparation: Preparation,
        client_ids: list[str],
        end_processes: Callable[[set[int]], None] | None = None,
    ) -> None:
        """`end_processes` ends those of our own processes that are among the pids of dead workers."""
        self.manifest: Manifest | None = None
        self.error: CliffwatchError | None = None
        self.preparation = preparation
        self._runner = runner
        self._board = Board(preparation.run_id, preparation.edges())
        self._members = {client_id: Member(client_id, shard) for shard, client_id in enumerate(client_ids)}
        self._end_processes = end_processes
        self._finished = gevent.event.Event()
        self._stop_reason: str | None = None
        self._t0_unix_ns: int | None = None
        self._end_ns: int | None = None  # since zero: when an early stop was asked for

    @property
    def run_dir(self) -> Path:
        return self.preparation.settings.out

    @property
    def elapsed_s(self) -> float:
        """Since the run's zero; negative before it."""
        return 0.0 if self._t0_unix_ns is None else (time.time_ns() - self._t0_unix_ns) / 1e9

    @property
    def stop_reason(self) -> str | None:
        return self._stop_reason

    @property
    def counts(self) -> MergedCounts:
        """What live metrics are made of, over all workers; empty unless they were asked for."""
        return self._board.counts

    @property
    def members(self) -> tuple[Member, ...]:
        """Every worker of the run, dead ones included."""
        return tuple(self._members.values())

    def totals(self) -> Totals:
        """What the workers reported so far."""
        return self._board.totals({member.shard for member in self._members.values() if member.dead})

    def conduct(self) -> None:
        """Run from assignment to closed manifest. Never raises for what can go wrong: see `error`."""
        try:
            self._start()
            self._watch()
            manifest = self._close()
            if self.preparation.settings.metrics is not None:
                recount(self.run_dir, self._board.counts)
            self.manifest = manifest
        except CliffwatchError as error:
            self.error = error
        finally:
            self._finished.set()

    def interrupt(self, reason: str) -> None:
        """Stop early: workers get the drain time, or none when asked again. `conduct` closes the run as partial."""
        if self._finished.is_set():
            return
        again = self._stop_reason is not None
        if not again:
            self._stop_reason = reason
            self._end_ns = max(0, int(self.elapsed_s * 1e9))
        self._tell(messages.STOP, {"now": again})

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until `conduct` has returned."""
        return bool(self._finished.wait(timeout_s))

    # what workers say

    def on_ready(self, client_id: str, data: dict[str, Any]) -> None:
        member = self._members.get(client_id)
        if member is not None and data.get("run_id") in {None, self.preparation.run_id}:
            member.host, member.pid, member.refusal = data.get("host"), data.get("pid"), data.get("refusal")
            member.ready = True

    def on_report(self, data: object) -> None:
        report = self._board.take(data, self.elapsed_s)
        if report is not None and report.failure and self._stop_reason is None:
            self.interrupt(f"worker {report.shard} could not go on: {report.failure}")

    def on_closed(self, client_id: str, data: object) -> None:
        self.on_report(data)
        member = self._members.get(client_id)
        report = None if member is None else self._board.reports.get(member.shard)
        if member is not None:
            member.closed, member.cut_short = True, report is not None and report.cut_short

    def on_process_ended(self, pid: int) -> None:
        """A worker process of our own has ended; if it had not closed its shard, it is dead."""
        known = [member for member in self._members.values() if member.pid == pid]
        for member in known or [member for member in self._members.values() if not member.ready]:
            member.dead = not member.closed

    # the run

    def _start(self) -> None:
        preparation, now_ns = self.preparation, time.time_ns()
        manifest = preparation.manifest(now_ns)
        create_run(self.run_dir, manifest, preparation.workload_text, preparation.slo_text)
        shards = len(self._members)
        for member in self._members.values():
            assignment = preparation.assignment(member.shard, shards)
            self._runner.send_message(messages.ASSIGN, messages.plain(assignment), client_id=member.client_id)
        self._await_ready()
        refusals = [f"worker {m.shard} on {m.host}: {m.refusal}" for m in self._members.values() if m.refusal]
        for member in self._members.values():
            member.dead = member.dead or bool(member.refusal)
        if refusals or self._stop_reason is not None:
            self._stop_reason = self._stop_reason or refusals[0]
            self._tell(messages.STOP, {"now": True})  # again: a worker may have got the first before its assignment
        else:
            delay_ns = int(_START_DELAY_S * 1e9)
            t0_ns, self._t0_unix_ns = time.monotonic_ns() + delay_ns, time.time_ns() + delay_ns
            write_manifest(self.run_dir, manifest.model_copy(update={"t0_unix_ns": self._t0_unix_ns}))
            self._tell(messages.GO, {"t0_ns": t0_ns, "t0_unix_ns": self._t0_unix_ns})

    def _await_ready(self) -> None:
        deadline_s = time.monotonic() + READY_WITHIN_S
        while not all(member.ready or member.dead for member in self._members.values()):
            self._note_missing()
            if time.monotonic() > deadline_s:
                break
            gevent.sleep(0.02)
        for member in self._members.values():
            if not member.ready:
                member.dead = True
                self._stop_reason = self._stop_reason or f"worker {member.shard} ended or did not answer before the run"

    def _watch(self) -> None:
        """Until every worker has closed its shard or is dead; after a stop, no longer than the drain allows."""
        deadline_s: float | None = None
        while not all(member.over for member in self._members.values()):
            self._note_missing()
            if self._stop_reason is not None:
                grace_s = self.preparation.settings.drain_s + CLOSE_MARGIN_S
                deadline_s = deadline_s or time.monotonic() + grace_s
                if time.monotonic() > deadline_s:
                    return
            gevent.sleep(_TICK_S)

    def _note_missing(self) -> None:
        """Locust drops or marks workers that are silent; one that stays so is dead."""
        clients = getattr(self._runner, "clients", None)
        if clients is None:
            return
        for member in self._members.values():
            client = clients.get(member.client_id)
            if client is not None and client.state != "missing":
                member.missed_since_s = None
                continue
            member.missed_since_s = member.missed_since_s or time.monotonic()
            if time.monotonic() - member.missed_since_s > SILENT_S:
                member.dead = True

    def _close(self) -> Manifest:
        members = self._members.values()
        dead = [member for member in members if not member.closed]
        if dead and self._end_processes is not None:
            self._end_processes({member.pid for member in dead if member.pid is not None})
        reason = self._stop_reason
        early = [member for member in members if member.cut_short] if reason is None else []
        gone = [*dead, *early]
        if reason is None and len(gone) == len(members):
            reason, gone = "every worker died or was stopped", dead
            self._stop_reason = reason  # not a run that ended by itself: its exit code says so
            self._end_ns = max(0, int(self.elapsed_s * 1e9))
        elif reason is None and gone:
            shards = ", ".join(str(member.shard) for member in gone)
            reason = f"worker {shards} died or was stopped, the others went on"
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._close_files(reason, gone)
            except RunError as error:  # a worker with a full disk lets go of its journal only when it ends
                if attempts == _CLOSE_ATTEMPTS:
                    raise unclosed(self.run_dir, reason, error) from error
                gevent.sleep(1.0)

    def _close_files(self, reason: str | None, gone: list[Member]) -> Manifest:
        last_end_ns = self._board.totals().last_end_ns
        return close_run(
            self.run_dir,
            state=RunState.COMPLETE if reason is None else RunState.PARTIAL,
            partial_reason=reason,
            workers=[self._info(member, lost=member in gone) for member in self._members.values()],
            load_s=last_end_ns / 1e9 if last_end_ns else None,
            plans=Plans(self.preparation.workload, self.preparation.target.limits).find,
            assigned={member.shard: self._ids(member.shard) for member in gone} if self._t0_unix_ns else {},
        )

    def _info(self, member: Member, *, lost: bool) -> WorkerInfo:
        report = self._board.reports.get(member.shard)
        return WorkerInfo(
            shard=member.shard,
            host=member.host,
            pid=member.pid,
            state="lost" if lost else "finished",
            rows=0,
            health=None if report is None else report.health,
            clock=None if report is None else report.clock,
        )

    def _ids(self, shard: int) -> Iterator[int]:
        """The ids that a shard should have sent by the end. In a closed loop nobody can say: none."""
        workload = self.preparation.workload
        if not workload.open_loop:
            return
        for plan in schedule(workload, shard=shard, shards=len(self._members)):
            if self._end_ns is not None and plan.intended_ns > self._end_ns:
                return
            yield plan.request_id

    def _tell(self, kind: str, data: dict[str, Any] | None) -> None:
        for member in self._members.values():
            if not member.over:
                self._runner.send_message(kind, data, client_id=member.client_id)
