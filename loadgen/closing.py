"""How a run is closed: what its workers left is counted, and lost requests are given their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import gevent

from cliffwatch.config import check_config
from cliffwatch.errors import RunError
from cliffwatch.records.files import journal_path
from cliffwatch.records.folder import close_run
from cliffwatch.records.journal import take_over
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState, WorkerInfo, read_manifest
from cliffwatch.workload.handover import number_of, shared_plans
from cliffwatch.workload.schedule import PlannedRequest, schedule
from cliffwatch.workload.spec import Workload
from loadgen.accounting import Board
from loadgen.composer import fit_to_limit
from loadgen.lease import LEASE_S, PAUSE_S
from loadgen.members import Part, Roster
from loadgen.preparation import Preparation
from loadgen.resuming import forget, in_charge

_CLOSE_ATTEMPTS = 5
WALL_CLOCK_S = 1.0  # between hosts; more is told of


@dataclass(slots=True)
class Ending:
    """Why and when a run ended: `stop_reason` of an early end, `end_ns` after the run's zero, which is `t0_unix_ns`
    where it began; `partial_reason` is what the manifest says."""

    stop_reason: str | None
    end_ns: int | None
    t0_unix_ns: int | None
    partial_reason: str | None = None

    def count_losses(self, roster: Roster, *, elapsed_ns: int) -> None:
        """Settle what is still open, and put in words what was lost."""
        for part in roster.open_parts():
            part.lost = True
        parts = [part for part in roster.parts.values() if not part.handed_over]
        lost = [part for part in parts if part.lost]
        self.partial_reason = self.stop_reason
        if self.stop_reason is None and parts and len(lost) == len(parts):
            # not a run that ended by itself: its exit code says so, and nothing later was to be sent
            self.stop_reason = self.partial_reason = "every worker died or was stopped"
            self.end_ns = elapsed_ns
            for part in lost:
                part.lost = not part.closed
        elif self.stop_reason is None and lost:
            numbers = ", ".join(str(part.number) for part in lost)
            self.partial_reason = f"worker {numbers} died or was stopped, the others went on"


def close(preparation: Preparation, roster: Roster, board: Board, ending: Ending) -> Manifest:
    """Close the files of a run. Raises RunError where that cannot be done, saying whether what was recorded is kept."""
    run_dir = preparation.settings.out
    parts = roster.parts.values()
    last_end_ns = board.totals().last_end_ns
    for part in parts:
        if not part.closed and roster.holder(part).silent_s > LEASE_S:
            take_over(journal_path(run_dir, part.number))  # its worker may stand still for hours yet
    for attempt in range(_CLOSE_ATTEMPTS):
        try:
            return close_run(
                run_dir,
                state=RunState.COMPLETE if ending.partial_reason is None else RunState.PARTIAL,
                partial_reason=ending.partial_reason,
                workers=[_info(part, board) for part in parts],
                load_s=last_end_ns / 1e9 if last_end_ns else None,
                plans=Plans(preparation.workload, preparation.target.limits).find,
                assigned={
                    p.number: _ids(preparation.workload, p, ending)
                    for p in parts
                    if p.lost or (p.handed_over and p.sent_below is not None)
                },
                unrecorded={part.number for part in parts if part.ships},
                warnings=[*roster.events, *_pauses(board, ending.t0_unix_ns or 0), *_wall_clocks(board)],
            )
        except RunError as error:  # a worker with a full disk lets go of its journal only when it ends
            if attempt == _CLOSE_ATTEMPTS - 1:
                raise _unclosed(run_dir, ending.partial_reason, error) from error
            gevent.sleep(1.0)
    raise AssertionError("unreachable")


def _info(part: Part, board: Board) -> WorkerInfo:
    report = board.reports.get(part.number)
    return WorkerInfo(
        shard=part.number,
        host=part.host,
        pid=part.pid,
        state=part.state,
        rows=0,
        health=None if report is None else report.health,
        clock=None if report is None else report.clock,
    )


def _ids(workload: Workload, part: Part, ending: Ending) -> Iterator[int]:
    """The ids that a part should have sent by the end. In a closed loop nobody can say: none."""
    if not workload.open_loop or ending.t0_unix_ns is None:
        return
    for plan in shared_plans(workload, part.ids):
        if plan is not None:
            if ending.end_ns is not None and plan.intended_ns > ending.end_ns:
                return
            if part.sent_below is not None and number_of(plan) >= part.sent_below:
                return
            yield plan.request_id


def _pauses(board: Board, t0_unix_ns: int) -> list[str]:
    """Which workers stood still for long, and when; one process once."""
    found: dict[tuple[str, int], str] = {}
    for report in board.reports.values():
        if report.pause_s >= PAUSE_S:
            found[report.host, report.pid] = (
                f"worker {report.shard} on {report.host} (pid {report.pid}) stood still for {report.pause_s:.1f} s "
                f"from {(report.pause_began_unix_ns - t0_unix_ns) / 1e9:.1f} s on: what was due then was late or sent "
                "late, and what was in flight was timed late"
            )
    return list(found.values())


def _wall_clocks(board: Board) -> list[str]:
    """Which workers' wall clocks say another time; one process once."""
    found: dict[tuple[str, int], str] = {}
    for report in board.reports.values():
        if report.clock is not None and abs(report.clock.offset_s) >= WALL_CLOCK_S:
            offset = f"{abs(report.clock.offset_s):.1f} s {'ahead of' if report.clock.offset_s > 0 else 'behind'}"
            found[report.host, report.pid] = (
                f"the wall clock of worker {report.shard} on {report.host} is {offset} the master's: its logs are, "
                "too; this run's times are not"
            )
    return list(found.values())


def _unclosed(run_dir: Path, reason: str | None, error: RunError) -> RunError:
    if (run_dir / FILE_NAME).is_file():
        text, allowed = "what was recorded is kept", "cliffwatch run --recover DIR, once the cause is gone"
    else:
        text, allowed = "its folder was removed while it went on, and with it what was recorded", "running it again"
    text = f"the run could not be closed ({error}); {text}"
    return RunError(text if reason is None else f"{reason}; {text}", file=run_dir, allowed=allowed)


def recover_run(run_dir: Path) -> Manifest:
    """Close a run whose master died, or whose disk was full, from what its workers wrote.

    Requests in flight become `lost`; what was never sent is not known any more and is not counted.

    Raises:
        RunError: no run there, one that is closed, one that has a master or that a worker still writes, or damaged
            files.
    """
    manifest = read_manifest(run_dir)
    if manifest.state is not RunState.RUNNING:
        raise RunError("is closed already", file=run_dir, allowed="a run that was never closed")
    workload = check_config(manifest.workload, Workload, source=str(run_dir / FILE_NAME))
    with in_charge(run_dir):
        closed = close_run(
            run_dir,
            state=RunState.PARTIAL,
            partial_reason="its end was not recorded; recovered from what the workers wrote",
            plans=Plans(workload, {}).find,
        )
        forget(run_dir)
    return closed


class Plans:
    """Planned requests by id, for ids that mostly rise: the schedule is a stream, and is read once where they do."""

    def __init__(self, workload: Workload, limits: Mapping[str, int | None]) -> None:
        """`limits` are the models' by name, the usual one first; none are known where it is empty."""
        self._restart: Callable[[], Iterator[PlannedRequest]] = lambda: _every_turn(workload)
        self._limits = limits
        self._usual = next(iter(limits), "")
        self._plans = self._restart()
        self._at = -1

    def find(self, request_id: int) -> PlannedRequest | None:
        """The plan as it was sent, shortened to the model's limit; None for an id that the schedule has not."""
        if request_id <= self._at:
            self._plans, self._at = self._restart(), -1
        for plan in self._plans:
            self._at = plan.request_id
            if plan.request_id == request_id:
                return plan if plan.turn else fit_to_limit(plan, self._limits.get(plan.model or self._usual))
        return None


def _every_turn(workload: Workload) -> Iterator[PlannedRequest]:
    for plan in schedule(workload):
        yield from plan.turns()
