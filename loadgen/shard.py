"""One assignment being carried out: connections, files and counts of a part of the schedule on one worker."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import gevent

from cliffwatch.config import check_config
from cliffwatch.errors import RunError
from cliffwatch.records.counted import RowCounts
from cliffwatch.records.files import final_path
from cliffwatch.records.manifest import read_manifest
from cliffwatch.records.writer import ShardWriter
from cliffwatch.workload.handover import number_of, shared_plans
from cliffwatch.workload.prompts import PromptBuilder
from cliffwatch.workload.schedule import PlannedRequest
from cliffwatch.workload.spec import Workload
from loadgen.access import Access
from loadgen.accounting import Tally, WorkerReport
from loadgen.composer import Composer, ServedModel
from loadgen.connection import Timeouts
from loadgen.delivery import courier_for
from loadgen.dispatcher import Dispatcher
from loadgen.health import Monitor
from loadgen.identity import SecretFiles
from loadgen.lease import Lease
from loadgen.own_folder import OwnFolder
from loadgen.preparation import Assignment
from loadgen.procfs import Process, raise_file_limit
from loadgen.replica_names import ReplicaNames
from loadgen.room import check_room, file_room
from loadgen.sender import Sender
from loadgen.shipping import Shipper
from loadgen.transport import Transport

_CLOSE_ATTEMPTS = 3


class Shard:
    """One assignment being carried out: connections, files and counts of one run on this worker."""

    def __init__(self, assignment: Assignment, secrets: SecretFiles, lease: Lease, *, exposed: bool = False) -> None:
        """`exposed`: this worker shows its own live metrics, whether or not the master does.

        A worker that does not see the run's folder writes in one of its own: `ships`. Raises CliffwatchError where it
        cannot take part.
        """
        self._own = _own_folder(assignment)
        run_dir = Path(assignment.run_dir) if self._own is None else self._own.path
        self.run_id, self.number = assignment.run_id, assignment.shard
        self.drain_s = assignment.drain_s
        self.unclosed = False
        workload = check_config(assignment.workload, Workload, source="assignment")
        ca_file = None if assignment.ca_file is None else Path(assignment.ca_file)
        access = Access.of(assignment.target, secrets, ca_file=ca_file, insecure=assignment.insecure)
        limits = workload.timeouts
        limit, limit_was = raise_file_limit()
        ports = Process().port_range()
        users = list(assignment.users.below(workload.users or 0))
        check_room(len(users), files=file_room(limit), ports=ports)
        self._transport = Transport(access, Timeouts(limits.connect, limits.first_token, limits.stall, limits.total))
        self._monitor = Monitor(self._transport.open_connections, fd_limit_was=limit_was)
        self._writer = ShardWriter(run_dir, assignment.shard)
        counts = RowCounts(assignment.edges) if assignment.count_rows or exposed else None
        self.tally = Tally(assignment.run_id, assignment.shard, self._writer, counts)
        composer = Composer(
            access=access,
            models=_served(assignment, workload.seed),
            sampling=workload.sampling.parameters(),
            run_id=assignment.run_id,
            tenant_headers={tenant.name: tenant.header for tenant in workload.tenants or ()},
        )
        header = assignment.replica_header
        sender = Sender(
            courier=courier_for(workload, self._transport),
            composer=composer,
            worker=assignment.shard,
            replicas=None if header is None else ReplicaNames(header),
        )
        plans = _from_first(shared_plans(workload, assignment.ids), assignment.ids.start)
        self._dispatcher = Dispatcher(workload, plans, sender, self.tally, users=users, lease=lease)

    @property
    def ships(self) -> bool:
        """Whether the rows have to be brought to the run's folder."""
        return self._own is not None

    def run(self, zero_ns: int) -> None:
        """Send everything, from `zero_ns` of our monotonic clock on, and wait for every end."""
        self._monitor.start()
        self._dispatcher.run(zero_ns)

    def ship(self, shipper: Callable[[Path], Shipper]) -> None:
        """Bring a closed shard from our own folder to the run's. Raises RunError; it stays where it is then."""
        assert self._own is not None  # noqa: S101
        try:
            shipper(final_path(self._own.path, self.number)).ship()
            self._own.remove()
        finally:
            self._own.release()

    def cease(self) -> None:
        """Issue nothing from this moment on."""
        self._dispatcher.cease()

    def stop(self, drain_s: float) -> None:
        self._dispatcher.stop(drain_s)

    def report(self) -> WorkerReport:
        return self.tally.report(failure=self._dispatcher.failure, health=self._monitor.health())

    def close(self) -> WorkerReport:
        """Complete the shard. A disk that stays full leaves it as parts and journal: see `unclosed`."""
        self._monitor.stop()
        self._transport.close()
        failure = self._dispatcher.failure
        for attempt in range(_CLOSE_ATTEMPTS):
            try:
                self._writer.close()
                self.unclosed = False
                break
            except RunError as error:
                self.unclosed = True
                failure = failure or str(error)
                gevent.sleep(0.5 * (attempt + 1))
        return self.tally.report(
            failure=failure, health=self._monitor.health(), closed=True, cut_short=self._dispatcher.cut_short
        )


def _served(assignment: Assignment, seed: int) -> dict[str, ServedModel]:
    """The models of the run; those that count tokens alike share their builder."""
    builders = [PromptBuilder(lexicon, seed, nonce=assignment.run_id) for lexicon in assignment.lexicons]
    return {model.name: ServedModel(builders[model.lexicon], model.limit_tokens) for model in assignment.models}


def _own_folder(assignment: Assignment) -> OwnFolder | None:
    """Where a shard is written if the run's folder is not seen; None where it is."""
    run_dir = Path(assignment.run_dir)
    if run_dir.is_dir() and read_manifest(run_dir).run_id == assignment.run_id:
        return None
    try:
        return OwnFolder()
    except OSError as error:
        raise RunError(
            f"is not seen by this worker's machine, which has no room of its own either: {error}", file=run_dir
        ) from error


def _from_first(plans: Iterator[PlannedRequest | None], start: int) -> Iterator[PlannedRequest]:
    """The plans, the first of a part taken over being looked for now: other parts go on sending meanwhile."""
    found: list[PlannedRequest] = []
    for plan in plans:
        if plan is None:
            gevent.sleep(0)
            continue
        found.append(plan)
        if number_of(plan) >= start:
            break
    return chain(found, (plan for plan in plans if plan is not None))


@contextmanager
def calm_collector() -> Iterator[None]:
    """Keep the garbage collector off the hot path: what exists now is never looked at, the rest seldom."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
