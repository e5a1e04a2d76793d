"""Where the files of a run lie, and a list of them that is right even while writers fold parts into shards."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from cliffwatch.errors import RunError

SHARDS = "shards"
LOST = "lost.parquet"
LOST_SHARD = -1
_PART = re.compile(r"worker-(\d{3,})\.part-(\d{4,})\.parquet")
_FINAL = re.compile(r"worker-(\d{3,})\.parquet")
_JOURNAL = re.compile(r"worker-(\d{3,})\.journal")
_LIST_ATTEMPTS = 100


def shards_dir(run_dir: Path) -> Path:
    return run_dir / SHARDS


def journal_path(run_dir: Path, shard: int) -> Path:
    return run_dir / SHARDS / f"worker-{shard:03d}.journal"


def part_path(run_dir: Path, shard: int, number: int) -> Path:
    return run_dir / SHARDS / f"worker-{shard:03d}.part-{number:04d}.parquet"


def final_path(run_dir: Path, shard: int) -> Path:
    return run_dir / SHARDS / f"worker-{shard:03d}.parquet"


def lost_path(run_dir: Path) -> Path:
    return run_dir / SHARDS / LOST


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a run at one instant: parts by number, finished shards, journals, and the file of lost requests."""

    parts: dict[int, list[Path]]
    finals: dict[int, Path]
    journals: dict[int, Path]
    lost: Path | None

    @property
    def shards(self) -> list[int]:
        return sorted({*self.parts, *self.finals, *self.journals})

    def sources(self) -> dict[int, list[Path]]:
        """The Parquet files that hold each shard's rows exactly once; `LOST_SHARD` is the file of lost requests.

        A finished shard takes the place of its parts, which lie beside it for a moment until they are removed.
        """
        found = self.parts | {shard: [file] for shard, file in self.finals.items()}
        return found if self.lost is None else found | {LOST_SHARD: [self.lost]}


def list_run(run_dir: Path) -> Listing:
    """List a run's files as they stood at one instant.

    A folder is not read atomically: a part can be removed while the shard that replaces it was not yet seen. The shard
    is renamed into place before any of its parts goes, so whoever missed it sees it on the next look; two looks
    that agree therefore missed nothing.

    Raises:
        RunError: the folder of shards is missing or cannot be read.
    """
    folder = shards_dir(run_dir)
    before: list[str] | None = None
    for _ in range(_LIST_ATTEMPTS):
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except OSError as error:
            raise RunError(f"cannot be listed: {error.strerror or error}", file=folder) from error
        if names == before:
            break
        before = names
    return _sort(folder, names)


def _sort(folder: Path, names: list[str]) -> Listing:
    parts: dict[int, dict[int, Path]] = defaultdict(dict)
    finals: dict[int, Path] = {}
    journals: dict[int, Path] = {}
    for name in names:
        if match := _PART.fullmatch(name):
            parts[int(match[1])][int(match[2])] = folder / name
        elif match := _FINAL.fullmatch(name):
            finals[int(match[1])] = folder / name
        elif match := _JOURNAL.fullmatch(name):
            journals[int(match[1])] = folder / name
    return Listing(
        parts={shard: [files[number] for number in sorted(files)] for shard, files in sorted(parts.items())},
        finals=dict(sorted(finals.items())),
        journals=dict(sorted(journals.items())),
        lost=folder / LOST if LOST in names else None,
    )
