"""The master's side of a run: give out its parts, start, watch, hand over what dead workers left, stop, close."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gevent
import gevent.event

from cliffwatch.errors import CliffwatchError, RunError
from cliffwatch.records.counted import MergedCounts
from cliffwatch.records.folder import create_run
from cliffwatch.records.manifest import Manifest, write_manifest
from cliffwatch.workload.handover import Share
from loadgen import messages
from loadgen.accounting import Board, Totals, WorkerReport
from loadgen.closing import Ending, close
from loadgen.lease import Pulse
from loadgen.losses import Losses
from loadgen.members import Member, Roster
from loadgen.metrics.recount import recount
from loadgen.orders import Orders
from loadgen.preparation import Preparation
from loadgen.resuming import Resumed, forget, in_charge, monotonic_zero_ns, save
from loadgen.shipping import receive

READY_WITHIN_S = 60.0
CLOSE_MARGIN_S = 30.0  # to fold a large shard, after the drain
# From "go" to the run's zero: every worker has heard it by then, and has done what it takes to begin, which on one host
# all of them do at once, on few cores.
_START_DELAY_S = 0.3
_START_DELAY_A_PART_S = 0.03
_TICK_S = 0.1
logger = logging.getLogger("cliffwatch")


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
        resumed: Resumed | None = None,
    ) -> None:
        """`end_processes` ends those of our own processes that are among the pids of dead workers; a run that was
        `resumed` goes on where its former master's books end."""
        self.manifest: Manifest | None = None
        self.error: CliffwatchError | None = None
        self.preparation = preparation
        self._orders = Orders(runner, preparation)
        self._remote = hasattr(runner, "clients")
        self._board = Board(preparation.run_id, preparation.edges())
        self._roster = Roster(client_ids) if resumed is None else resumed.roster
        self._resumed = resumed
        self._losses = Losses(self._roster, preparation, self._orders.assign, resumed=resumed is not None)
        self._end_processes = end_processes
        self._charge = ExitStack()
        self._finished = gevent.event.Event()
        self._stop_reason: str | None = None
        self._t0_ns = 0  # the run's zero on our monotonic clock, which all of it is timed by
        self._t0_unix_ns: int | None = None
        self._stop_now = False
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
    def reports(self) -> Mapping[int, WorkerReport]:
        """The newest report of each worker, by shard."""
        return self._board.reports

    @property
    def members(self) -> tuple[Member, ...]:
        """Every worker of the run, dead ones included."""
        return tuple(self._roster)

    def totals(self) -> Totals:
        """What the workers reported so far."""
        return self._board.totals(self._roster.gone_shards())

    def conduct(self) -> None:
        """Run from assignment to closed manifest. Never raises for what can go wrong: see `error`."""
        try:
            if self._resumed is None:
                self._start()
            else:
                self._go_on(self._resumed)
            self._watch()
            manifest = self._close()
            self._recount()
            self.manifest = manifest
        except CliffwatchError as error:
            self.error = error
        except Exception as error:  # whoever waits for the end of the run would do so for ever
            logger.exception("the run's master failed")
            text = f"the master failed ({error!r}); what was recorded is kept"
            self.error = RunError(text, file=self.run_dir, allowed="cliffwatch run --recover DIR")
        finally:
            self._charge.close()
            self._finished.set()

    def interrupt(self, reason: str) -> None:
        """Stop early: workers get the drain time, or none when asked again. `conduct` closes the run as partial."""
        if self._finished.is_set():
            return
        again = self._stop_reason is not None
        if not again:
            self._stop_reason = reason
            self._end_ns = max(0, int(self.elapsed_s * 1e9))
        self._stop_workers(now=again)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until `conduct` has returned."""
        return bool(self._finished.wait(timeout_s))

    # what workers say

    def on_beat(self, client_id: str, beat: messages.Beat) -> messages.Renewal:
        """A worker lives; one that is not known yet joins. The answer says which of its parts it may go on with."""
        member = self._roster.members.get(client_id)
        if member is None and not self._finished.is_set():
            member = self._join(client_id, beat)
        if member is not None:
            member.host, member.pid, member.silent_s = beat.host, beat.pid, 0.0
            if member.returns:
                self._roster.welcome_back(member, {*beat.shards, *beat.closed})
        ours = member is not None and beat.run_id == self.preparation.run_id and not self._finished.is_set()
        if member is not None and not self._finished.is_set():
            self._repeat(member, beat if ours else None)
        held = self._roster.held(client_id, beat.shards) if ours else []
        unheard = self._roster.unheard(client_id, beat.closed) if ours else []
        return messages.Renewal(run_id=beat.run_id, asked=beat.shards, held=held, sent_ns=beat.sent_ns, unheard=unheard)

    def on_ready(self, client_id: str, data: object) -> None:
        ready = messages.read(data, messages.Ready)
        if ready is None or ready.run_id != self.preparation.run_id:
            return
        part = self._roster.part_of(client_id, ready.shard)
        if part is None or part.closed:
            return
        member = self._roster.holder(part)
        if not part.ready:
            part.host, part.pid, part.refusal = ready.host, ready.pid, ready.refusal
            part.ready, part.ships = True, ready.ships
            member.host, member.pid, member.unfit = ready.host, ready.pid, member.unfit or ready.refusal is not None
        member.silent_s = 0.0
        if self._t0_unix_ns is None or part.refusal is not None or part.settled:
            return
        if self._stop_reason is None:
            self._orders.go(part, self._t0_ns, self._t0_unix_ns)
        else:  # it was told to stop before it had this part
            self._orders.stop([client_id], now=True)

    def on_report(self, data: object) -> WorkerReport | None:
        report = self._board.take(data, self.elapsed_s)
        if report is not None and report.failure and self._stop_reason is None:
            self.interrupt(f"worker {report.shard} could not go on: {report.failure}")
        return report

    def on_closed(self, client_id: str, data: object) -> None:
        report = self.on_report(data)
        part = None if report is None else self._roster.part_of(client_id, report.shard)
        if report is not None and part is not None:
            part.closed, part.cut_short = True, report.cut_short
            if part.cut_short and not part.settled and self._stop_reason is None:
                self._roster.holder(part).unfit = True  # stopped by somebody else: it is about to leave

    def on_piece(self, client_id: str, data: object) -> messages.Arrived | None:
        """Some of a shard that its worker could not write in the run's folder; the answer is how much is there."""
        piece = messages.read(data, messages.Piece)
        if piece is None or piece.run_id != self.preparation.run_id or self._finished.is_set():
            return None
        part = self._roster.part_of(client_id, piece.shard)
        return None if part is None or not part.ships or part.closed else receive(self.run_dir, piece)

    def on_process_ended(self, pid: int) -> None:
        """A worker process of our own has ended; what it had not closed is gone."""
        known = [member for member in self._roster if member.pid == pid]
        for member in known or [member for member in self._roster if member.pid is None]:
            member.dead = True

    # the run

    def _start(self) -> None:
        manifest = self.preparation.manifest(time.time_ns())
        create_run(self.run_dir, manifest, self.preparation.workload_text, self.preparation.slo_text)
        self._charge.enter_context(in_charge(self.run_dir))
        members = list(self._roster)
        users = self.preparation.workload.users
        shares = Share(0, 1).split(len(members) if users is None else min(len(members), users))
        for member, share in zip(members, shares, strict=False):
            self._orders.assign(self._roster.give(member, share, share))
        self._await_ready()
        refusals = [f"worker {p.number} on {p.host}: {p.refusal}" for p in self._roster.parts.values() if p.refusal]
        if refusals or self._stop_reason is not None:
            self._stop_reason = self._stop_reason or refusals[0]
            self._stop_workers(now=True)  # again: a worker may have got the first before its assignment
            return
        delay_ns = int((_START_DELAY_S + _START_DELAY_A_PART_S * len(self._roster.parts)) * 1e9)
        self._t0_ns, self._t0_unix_ns = time.monotonic_ns() + delay_ns, time.time_ns() + delay_ns
        write_manifest(self.run_dir, manifest.model_copy(update={"t0_unix_ns": self._t0_unix_ns}))
        for part in self._roster.parts.values():
            self._orders.go(part, self._t0_ns, self._t0_unix_ns)
        save(self.preparation, self._roster)

    def _go_on(self, resumed: Resumed) -> None:
        self._charge.enter_context(in_charge(self.run_dir))
        self._t0_ns, self._t0_unix_ns = monotonic_zero_ns(resumed.t0_unix_ns), resumed.t0_unix_ns
        self._roster.note(self.elapsed_s, "the master had died, and another one went on")
        self._recount()

    def _await_ready(self) -> None:
        deadline_s = time.monotonic() + READY_WITHIN_S
        parts = self._roster.parts.values()
        while not all(part.ready or self._roster.holder(part).dead for part in parts):
            if time.monotonic() > deadline_s:
                break
            gevent.sleep(0.02)
        for part in parts:
            if not part.ready:
                part.lost = True
                self._stop_reason = self._stop_reason or f"worker {part.number} ended or did not answer before the run"

    def _watch(self) -> None:
        """Until every part is closed, lost or handed over; after a stop, no longer than the drain allows."""
        deadline_s: float | None = None
        pulse = Pulse()
        while True:
            stopping = self._stop_reason is not None
            self._losses.look(pulse.tick() if self._remote else 0.0, self.elapsed_s, stopping=stopping)
            if not self._roster.open_parts() and (stopping or all(p.settled for p in self._roster.parts.values())):
                return
            if stopping:
                grace_s = self.preparation.settings.drain_s + CLOSE_MARGIN_S
                deadline_s = deadline_s or time.monotonic() + grace_s
                if time.monotonic() > deadline_s:
                    return
            gevent.sleep(_TICK_S)

    def _close(self) -> Manifest:
        ending = Ending(self._stop_reason, self._end_ns, self._t0_unix_ns)
        ending.count_losses(self._roster, elapsed_ns=max(0, int(self.elapsed_s * 1e9)))
        self._stop_reason = ending.stop_reason
        if self._end_processes is not None:
            unclosed = (part for part in self._roster.parts.values() if not part.closed)
            self._end_processes({part.pid for part in unclosed if part.pid is not None})
        manifest = close(self.preparation, self._roster, self._board, ending)
        forget(self.run_dir)
        return manifest

    def _recount(self) -> None:
        """Count, for live metrics, the rows that no worker has told us of: those of dead ones, or before our time."""
        if self.preparation.settings.metrics is not None:
            recount(self.run_dir, self._board.counts)

    def _join(self, client_id: str, beat: messages.Beat) -> Member:
        member = self._roster.join(client_id)
        if self.preparation.settings.on_worker_loss == "redistribute":
            does = "it stands by to take over the part of a worker that dies"
        else:
            does = "it stands by and sends nothing, since the part of a worker that dies counts as lost"
        self._roster.note(self.elapsed_s, f"a worker on {beat.host} (pid {beat.pid}) joined: {does}")
        text = f"the run had begun before this worker joined: {does} (--on-worker-loss)"
        self._orders.stand_by(client_id, text)
        return member

    def _repeat(self, member: Member, beat: messages.Beat | None) -> None:
        """Say again what a worker seems not to have heard; None where it knows nothing of this run."""
        if self._stop_reason is None:
            known = set() if beat is None else {*beat.shards, *beat.closed}
            self._orders.assign_again(self._roster.unknown_to(member, known))
        elif beat is not None and self._roster.held(member.client_id, beat.shards):
            self._orders.stop([member.client_id], now=self._stop_now)

    def _stop_workers(self, *, now: bool) -> None:
        self._stop_now = now
        self._orders.stop({part.client_id for part in self._roster.open_parts()}, now=now)
