"""How a run is closed when something went wrong: recovered from its folder, its lost requests given their shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cliffwatch.config import check_config
from cliffwatch.errors import RunError
from cliffwatch.records.folder import close_run
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState, read_manifest
from cliffwatch.workload.schedule import PlannedRequest, schedule
from cliffwatch.workload.spec import Workload
from loadgen.composer import fit_to_limit


def unclosed(run_dir: Path, reason: str | None, error: RunError) -> RunError:
    text = f"the run could not be closed ({error}); what was recorded is kept"
    return RunError(
        text if reason is None else f"{reason}; {text}",
        file=run_dir,
        allowed="cliffwatch run --recover DIR, once the cause is gone",
    )


def recover_run(run_dir: Path) -> Manifest:
    """Close a run whose master died, or whose disk was full, from what its workers wrote.

    Requests in flight become `lost`; what was never sent is not known any more and is not counted.

    Raises:
        RunError: no run there, one that is closed, one that a worker still writes, or files that are damaged.
    """
    manifest = read_manifest(run_dir)
    if manifest.state is not RunState.RUNNING:
        raise RunError("is closed already", file=run_dir, allowed="a run that was never closed")
    workload = check_config(manifest.workload, Workload, source=str(run_dir / FILE_NAME))
    return close_run(
        run_dir,
        state=RunState.PARTIAL,
        partial_reason="its end was not recorded; recovered from what the workers wrote",
        plans=Plans(workload, {}).find,
    )


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
