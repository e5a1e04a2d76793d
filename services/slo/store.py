"""The folder of runs: which runs are in it, which one an id means, and whether its files have changed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.errors import RunError
from cliffwatch.records.manifest import FILE_NAME, Manifest, RunState
from cliffwatch.records.runs import summarise

MAX_ID_CHARACTERS = 255
_ID_RULE = "the name of a folder in the runs folder, as /v1/runs lists it"


class UnknownRunError(RunError):
    """No run of that id is in the folder, or the id is not one that a run could have."""


class RunsFolderError(RunError):
    """The folder of runs itself cannot be read."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run: its id (the folder's name), where it is, and what state its files were in when it was looked up.

    `fingerprint` changes whenever the manifest, the SLO file or a Parquet file is written, added or removed, that is,
    whenever a reader could see something new; `changed_unix_s` is the newest write, journals included.
    """

    run_id: str
    path: Path
    fingerprint: str
    changed_unix_s: float

    def told(self, text: str) -> str:
        """`text` without the place of the runs folder on this machine, which is no business of a client."""
        return text.replace(f"{self.path}/", "").replace(str(self.path), self.run_id)


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run by its manifest, or `problem` where that cannot be read; `live` while a worker writes it."""

    folder: RunFolder
    manifest: Manifest | None
    live: bool
    problem: str | None


class RunStore:
    """Looks runs up under `root`, which holds run folders or is one itself. Reads only; follows no link out of it."""

    def __init__(self, root: Path) -> None:
        """Raises RunsFolderError where `root` is not a folder that can be read."""
        self.root = root.resolve()
        self._single = (self.root / FILE_NAME).is_file()
        self._closed: dict[str, ListedRun] = {}
        _folder_names(self.root)

    def find(self, run_id: str) -> RunFolder:
        """The run with that id. Raises UnknownRunError for an id that is not a run's name or leads elsewhere."""
        unusable = not run_id or len(run_id) > MAX_ID_CHARACTERS or run_id in {".", ".."}
        if unusable or any(character in run_id for character in "/\\\0"):
            raise UnknownRunError("is not a run id", field="run", value=run_id, allowed=_ID_RULE)
        path = self.root if self._single and run_id == self.root.name else self.root / run_id
        try:
            inside = path.resolve().parent == self.root or (self._single and path == self.root)
            if inside and (path / FILE_NAME).is_file():
                return _look(run_id, path)
        except (OSError, ValueError):  # a name the file system cannot hold, or a folder removed meanwhile
            pass
        raise UnknownRunError("there is no such run", field="run", value=run_id, allowed=_ID_RULE)

    def list(self) -> list[ListedRun]:
        """Every run, newest first; one whose manifest is damaged with its problem. Raises RunsFolderError."""
        ids = [self.root.name] if self._single else _folder_names(self.root)
        runs = []
        for run_id in ids:
            try:
                runs.append(self.listed(self.find(run_id)))
            except UnknownRunError:
                continue
        self._closed = {run.folder.run_id: run for run in runs if run.manifest is None or _is_closed(run.manifest)}
        return sorted(runs, key=_started, reverse=True)

    def listed(self, folder: RunFolder) -> ListedRun:
        """The run with its manifest, which is read again only where it is live or was changed."""
        known = self._closed.get(folder.run_id)
        if known is not None and known.folder.fingerprint == folder.fingerprint:
            return known
        summary = summarise(folder.path)
        problem = None if summary.problem is None else folder.told(summary.problem)
        return ListedRun(folder, summary.manifest, summary.live, problem)


def _is_closed(manifest: Manifest) -> bool:
    return manifest.state is not RunState.RUNNING


def _folder_names(root: Path) -> list[str]:
    try:
        with os.scandir(root) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise RunsFolderError(reason, file=root, field="--runs", allowed="a folder that holds runs") from error


def _started(run: ListedRun) -> float:
    return run.manifest.created_unix_s if run.manifest else run.folder.changed_unix_s


def _stamp(path: Path) -> tuple[str, float]:
    """A text that changes with every write of the file, and when the last one was; `absent`, 0 without a file."""
    try:
        status = path.stat()
    except OSError:
        return "absent", 0.0
    return f"{status.st_mtime_ns}:{status.st_size}:{status.st_ino}", status.st_mtime


def _look(run_id: str, path: Path) -> RunFolder:
    names = [path / FILE_NAME, path / "slo.yaml"]
    if (path / "shards").is_dir():
        names += sorted((path / "shards").iterdir())
    stamps = [(name.name, *_stamp(name)) for name in names]
    rows = [(name, stamp) for name, stamp, _ in stamps if not name.endswith(".journal")]
    digest = hashlib.sha256(repr((path, rows)).encode())
    return RunFolder(run_id, path, digest.hexdigest()[:24], max(changed for _, _, changed in stamps))
