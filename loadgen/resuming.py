"""What another master needs to go on with a run whose master died: written beside the manifest, removed at the end.

No secret is in it: nobody but a worker has a use for one, and each reads its own.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cliffwatch.config import check_config
from cliffwatch.errors import InputError, RunError
from cliffwatch.records.folder import SLO_FILE, WORKLOAD_FILE
from cliffwatch.records.manifest import Manifest, RunState, read_manifest
from cliffwatch.workload.spec import Workload
from loadgen.identity import SecretFiles
from loadgen.members import Part, Roster
from loadgen.origin import Origin
from loadgen.preparation import Assignment, Preparation
from loadgen.settings import WORKER_LOSS, Settings
from loadgen.shipping import discard_unfinished
from loadgen.target import Target

PROGRESS_FILE = "progress.json"
logger = logging.getLogger("cliffwatch")


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """`assignment` is that of any part, the rest of a run being the same for all; `parts` are in order of number."""

    assignment: Assignment
    engine: str | None
    on_worker_loss: str
    parts: list[Part]
    events: list[str]


def save(preparation: Preparation, roster: Roster) -> None:
    """Put down how things stand. Raises RunError where the folder cannot be written."""
    parts = list(roster.parts.values())
    progress = Progress(
        assignment=preparation.assignment(0, parts[0].ids, parts[0].users),
        engine=preparation.target.engine,
        on_worker_loss=preparation.settings.on_worker_loss,
        parts=parts,
        events=roster.events,
    )
    path = preparation.settings.out / PROGRESS_FILE
    fresh = path.with_suffix(".json.new")
    try:
        fresh.write_bytes(msgspec.json.encode(progress))
        fresh.replace(path)
    except OSError as error:
        raise RunError(f"cannot be written: {error.strerror or error}", file=path) from error


@contextmanager
def in_charge(run_dir: Path) -> Iterator[None]:
    """Be the one master of a run, as long as this process lives at most. Raises RunError where another is.

    The kernel keeps the lock on the folder itself. A file system that has no such locks holds nobody up.
    """
    try:
        descriptor = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise RunError(f"cannot be opened: {error.strerror}", file=run_dir) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise RunError("has a master that lives", file=run_dir, allowed="a run whose master died") from error
    except OSError:
        logger.warning("%s is on a file system without locks: see that no other master goes on with this run", run_dir)
    try:
        yield
    finally:
        os.close(descriptor)


def forget(run_dir: Path) -> None:
    """The run is closed: nobody goes on with it, nor with a shard on its way. Raises RunError."""
    try:
        discard_unfinished(run_dir)
        (run_dir / PROGRESS_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"cannot be removed: {error.strerror}", file=run_dir / PROGRESS_FILE) from error


def load(run_dir: Path) -> tuple[Manifest, Progress]:
    """What is known of a run that was never closed. Raises RunError where it cannot be gone on with."""
    manifest, path = read_manifest(run_dir), run_dir / PROGRESS_FILE
    if manifest.state is not RunState.RUNNING:
        raise RunError("is closed already", file=run_dir, allowed="a run that was never closed")
    try:
        progress = msgspec.json.decode(path.read_bytes(), type=Progress)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(
            f"had not begun, or cannot be read: {error}", file=path, allowed="cliffwatch run --recover DIR, to close it"
        ) from error
    if not progress.parts or progress.assignment.run_id != manifest.run_id:
        raise RunError("is not of this run", file=path, allowed="cliffwatch run --recover DIR, to close it")
    return manifest, progress


def preparation_of(
    run_dir: Path,
    manifest: Manifest,
    progress: Progress,
    secrets: SecretFiles,
    on_worker_loss: str,
    metrics: str | None = None,
) -> Preparation:
    """The run as it had been prepared; `on_worker_loss` instead of what was chosen then, unless empty. `metrics` is
    where its live metrics are from now on.

    Raises InputError for another choice than there is.
    """
    choice = on_worker_loss or progress.on_worker_loss
    if choice not in WORKER_LOSS:
        raise InputError("is unknown", field="--on-worker-loss", value=choice, allowed=" or ".join(WORKER_LOSS))
    assignment = progress.assignment
    slo_file = run_dir / SLO_FILE
    slo_text = slo_file.read_text(encoding="utf-8") if slo_file.is_file() else None
    return Preparation(
        run_id=manifest.run_id,
        settings=Settings(
            workload=str(run_dir / WORKLOAD_FILE),
            target=assignment.target,
            out=run_dir,
            slo=None if slo_text is None else str(slo_file),
            ca_file=None if assignment.ca_file is None else Path(assignment.ca_file),
            secrets=secrets,
            insecure=assignment.insecure,
            drain_s=assignment.drain_s,
            metrics=metrics,
            on_worker_loss=choice,
            replicas=manifest.replicas,
        ),
        workload=check_config(assignment.workload, Workload, source=str(run_dir / PROGRESS_FILE)),
        workload_text="",
        slo_text=slo_text,
        origin=Origin.parse(assignment.target),
        target=Target({model.name: model.limit_tokens for model in assignment.models}, progress.engine),
        lexicons={model.name: assignment.lexicons[model.lexicon] for model in assignment.models},
        notes=(),
    )


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run to go on with: its books, and its zero."""

    roster: Roster
    t0_unix_ns: int


def roster_of(progress: Progress) -> Roster:
    """The books as they stood. Whoever of the members still lives will be heard; time tells who does not."""
    roster = Roster(())
    for part in progress.parts:
        member = roster.members.get(part.client_id) or roster.join(part.client_id)
        member.host, member.pid, member.returns = part.host, part.pid, True
        member.parts.append(part)
        roster.parts[part.number] = part
    roster.events += progress.events
    return roster


def monotonic_zero_ns(t0_unix_ns: int) -> int:
    """The run's zero on our monotonic clock, as near as the wall clock has it."""
    return time.monotonic_ns() - (time.time_ns() - t0_unix_ns)
