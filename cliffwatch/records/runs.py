"""What a list of runs says of one folder, be it damaged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cliffwatch.errors import RunError
from cliffwatch.records.files import list_run
from cliffwatch.records.journal import is_written
from cliffwatch.records.manifest import Manifest, read_manifest


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run folder.

    Attributes:
        dir: where it is.
        manifest: None where it cannot be read; `problem` says why then.
        live: whether a worker on this machine is writing it. A run whose state is `running` and that is not live is
            starting, is written elsewhere, or was killed before it could be closed.
        problem: what is wrong with the folder, or None.
    """

    dir: Path
    manifest: Manifest | None
    live: bool
    problem: str | None = None


def summarise(run_dir: Path) -> RunSummary:
    """One folder's summary; what is wrong with it is said in it, not raised."""
    try:
        manifest = read_manifest(run_dir)
        live = any(is_written(path) for path in list_run(run_dir).journals.values())
    except RunError as error:
        return RunSummary(dir=run_dir, manifest=None, live=False, problem=str(error))
    return RunSummary(dir=run_dir, manifest=manifest, live=live)
