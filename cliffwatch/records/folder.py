"""The life of a run folder: claimed before any load is sent, closed with every request accounted for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np

from cliffwatch.errors import RunError
from cliffwatch.records.accounting import account
from cliffwatch.records.files import final_path, journal_path, list_run, lost_path, shards_dir
from cliffwatch.records.fold import Fold, clear_shard, fold_shard, request_ids
from cliffwatch.records.journal import is_written
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState, WorkerInfo, read_manifest, write_manifest
from cliffwatch.records.parquet import table_of, write_shard
from cliffwatch.records.reader import connect_files
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.records.verdict import judge_trust

WORKLOAD_FILE = "workload.yaml"
SLO_FILE = "slo.yaml"
IN_FLIGHT = "in flight when the worker died"
NEVER_SENT = "never sent: worker died"
UNRECORDED = "not known whether it was sent: its record was lost with the worker"


class Shape(Protocol):
    """What a lost request would have been, as the schedule has it."""

    @property
    def intended_ns(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def batch(self) -> int: ...
    @property
    def cache(self) -> str: ...
    @property
    def phase(self) -> Phase: ...
    @property
    def model(self) -> str | None: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def session(self) -> int | None: ...
    @property
    def turn(self) -> int | None: ...
    @property
    def endpoint(self) -> str: ...


def create_run(run_dir: Path | str, manifest: Manifest, workload_text: str, slo_text: str | None = None) -> Path:
    """Make a run folder and write what is known before the first request. Returns its path.

    Raises:
        RunError: the folder holds a run already, is a file, or cannot be written. Nothing new is left then.
    """
    run_dir = Path(run_dir)
    made: list[Path] = []
    try:
        _refuse_run(run_dir)
        for folder in [*reversed(run_dir.parents), run_dir]:
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        shards_dir(run_dir).mkdir()  # fails for all but one, so two runs cannot share a folder
        made.append(shards_dir(run_dir))
        texts = {WORKLOAD_FILE: workload_text} | ({} if slo_text is None else {SLO_FILE: slo_text})
        for name, text in texts.items():
            made.append(run_dir / name)
            (run_dir / name).write_text(text, encoding="utf-8")
        write_manifest(run_dir, manifest)
    except (OSError, RunError) as error:
        _unmake(made)
        if isinstance(error, RunError):
            raise
        if isinstance(error, FileExistsError) and shards_dir(run_dir).is_dir():
            raise RunError(
                "already holds the shards of a run", file=run_dir, allowed="a new or empty folder"
            ) from error
        raise RunError(f"cannot be written: {error.strerror or error}", file=run_dir) from error
    return run_dir


def _refuse_run(run_dir: Path) -> None:
    if (run_dir / FILE_NAME).exists():
        raise RunError("already holds a run", file=run_dir, allowed="a new or empty folder")


def _unmake(made: Sequence[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):  # the error that brought us here is the one to tell
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def close_run(
    run_dir: Path | str,
    *,
    state: RunState,
    partial_reason: str | None = None,
    workers: Sequence[WorkerInfo] = (),
    load_s: float | None = None,
    plans: Callable[[int], Shape | None] | None = None,
    assigned: Mapping[int, Iterable[int]] | None = None,
    unrecorded: Collection[int] = (),
    warnings: Sequence[str] = (),
) -> Manifest:
    """Fold every shard, give every request without an end the outcome `lost`, and close the manifest.

    May be called again after an interruption at any point: it goes on where it was, and a closed run stays as it is.
    A run in which requests were lost is partial, whatever `state` says.

    Args:
        run_dir: the run folder; no worker may write in it any more.
        state: `complete` or `partial`.
        partial_reason: what cut the run short.
        workers: the workers as the caller knew them; rows are counted here, and shards that it did not name are added.
        load_s: seconds from the run's zero to the last request's end.
        plans: the shape of a request by its id, for the rows of lost requests.
        assigned: for each dead worker's shard, the ids that its schedule held up to the end of the run. Those of
            which nothing was heard become `lost`, never sent.
        unrecorded: shards whose records died with their worker: nobody can say which of their lost requests were sent.
        warnings: added to the manifest's.

    Raises:
        RunError: a worker still writes; a file is damaged; the disk is full; a lost request has no shape; or the rows
            do not account for every request issued. The folder stays as it was, to be closed again.
    """
    run_dir = Path(run_dir)
    manifest = read_manifest(run_dir)
    if manifest.state is not RunState.RUNNING:
        _clear(run_dir)
        return manifest
    folds = _fold_all(run_dir, workers)
    lost = list(_lost_rows(run_dir, folds, manifest.model, plans, assigned or {}, unrecorded))
    _write_lost(run_dir, lost)
    if lost and state is RunState.COMPLETE:
        state = RunState.PARTIAL
        partial_reason = partial_reason or f"a worker died: {len(lost)} requests were lost"
    closed = manifest.model_copy(
        update={
            "state": state,
            "partial_reason": partial_reason,
            "ended_unix_s": time.time(),
            "load_s": load_s,
            "workers": _workers(workers, folds),
            "warnings": (*manifest.warnings, *warnings, *_damage(folds)),
        }
    )
    issued = sum(fold.issued - len(fold.open) for fold in folds) + len(lost)
    closed = _with_counts(run_dir, closed, issued)
    write_manifest(run_dir, closed)
    _clear(run_dir)
    return closed


def _fold_all(run_dir: Path, workers: Sequence[WorkerInfo]) -> list[Fold]:
    """Every shard of the folder or of a named worker, folded. Raises RunError, before any is, where one is written."""
    shards = sorted({*list_run(run_dir).shards, *(worker.shard for worker in workers)})
    for shard in shards:
        if is_written(journal_path(run_dir, shard)):
            raise RunError("is still written by a worker", file=journal_path(run_dir, shard))
    return [fold_shard(run_dir, shard) for shard in shards]


def _write_lost(run_dir: Path, lost: Sequence[RequestRow]) -> None:
    lost_path(run_dir).unlink(missing_ok=True)  # of a close that was interrupted
    if lost:
        write_shard(lost_path(run_dir), iter([table_of(lost)]), {})


def _clear(run_dir: Path) -> None:
    for shard in list_run(run_dir).finals:
        clear_shard(run_dir, shard, journal=True)


def _lost_rows(
    run_dir: Path,
    folds: Sequence[Fold],
    model: str,
    plans: Callable[[int], Shape | None] | None,
    assigned: Mapping[int, Iterable[int]],
    unrecorded: Collection[int],
) -> Iterator[RequestRow]:
    told = _taken_over(run_dir, folds)
    for fold in folds:
        never_sent = set(assigned.get(fold.shard, ()))
        if never_sent:
            never_sent -= set(request_ids(final_path(run_dir, fold.shard)).tolist())
        for request_id in sorted((never_sent | fold.open.keys()) - told):
            told.add(request_id)
            shape = plans(request_id) if plans else None
            if shape is None:
                raise RunError(
                    f"request {request_id} was lost and nothing tells what it was",
                    file=journal_path(run_dir, fold.shard),
                    allowed="closing the run with the schedule that it was made from",
                )
            yield RequestRow(
                request_id=request_id,
                worker=fold.shard,
                phase=shape.phase,
                endpoint=shape.endpoint,
                model=shape.model or model,
                batch=shape.batch,
                cache=shape.cache,
                input_tokens=shape.input_tokens,
                max_output_tokens=shape.output_tokens,
                intended_ns=fold.open.get(request_id, shape.intended_ns),
                outcome=Outcome.LOST,
                error=IN_FLIGHT if request_id in fold.open else UNRECORDED if fold.shard in unrecorded else NEVER_SENT,
                attempts=None if request_id in fold.open else 0,
                tenant=shape.tenant,
                priority=shape.priority,
                session=shape.session,
                turn=shape.turn,
            )


def _taken_over(run_dir: Path, folds: Sequence[Fold]) -> set[int]:
    """Requests without an end in one shard of which another has the row: noted by a worker that lost its leave to send
    in that very moment, and sent by the one that took over."""
    without_end = np.array(sorted({request_id for fold in folds for request_id in fold.open}), dtype=np.int64)
    found: set[int] = set()
    for fold in folds if without_end.size else ():
        found.update(np.intersect1d(without_end, request_ids(final_path(run_dir, fold.shard))).tolist())
    return found


def _workers(named: Sequence[WorkerInfo], folds: Sequence[Fold]) -> tuple[WorkerInfo, ...]:
    known = {worker.shard: worker for worker in named}
    found = []
    for fold in folds:
        header = fold.header
        worker = known.get(fold.shard) or WorkerInfo(
            shard=fold.shard,
            host=header.host if header else None,
            pid=header.pid if header else None,
            state="lost" if header else "finished",  # a clean end leaves no journal
            rows=0,
        )
        found.append(worker.model_copy(update={"rows": fold.rows}))
    return tuple(found)


def _damage(folds: Sequence[Fold]) -> list[str]:
    return [
        f"worker {fold.shard}: {fold.damaged_lines} lines of its journal were unreadable and were left out"
        for fold in folds
        if fold.damaged_lines
    ]


def _with_counts(run_dir: Path, manifest: Manifest, issued: int) -> Manifest:
    """Count the rows against what the workers say they issued, and judge whether the run can be trusted."""
    files = [path for paths in list_run(run_dir).sources().values() for path in paths]
    with connect_files(files) as connection:
        counts = connection.execute("SELECT outcome, count(*) FROM requests GROUP BY outcome").fetchall()
        twice = connection.execute(
            "SELECT request_id FROM requests GROUP BY request_id HAVING count(*) > 1 ORDER BY 1 LIMIT 5"
        ).fetchall()
        accounting = account({Outcome(name): int(count) for name, count in counts})
        verdict = judge_trust(connection, manifest)
    if twice:
        raise RunError("has requests with more than one row", file=run_dir, value=[row[0] for row in twice])
    if issued != accounting.issued or not accounting.balanced:
        raise RunError(f"the workers issued {issued} requests, but {accounting.issued} have a row", file=run_dir)
    return manifest.model_copy(update={"accounting": accounting, "verdict": verdict})
