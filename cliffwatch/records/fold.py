"""From parts and journal to one finished shard: how a clean worker ends, and how a dead one is recovered.

Order is what makes a crash harmless. The shard is complete under another name before it is renamed into place; its
parts and journal go only after that. Whoever comes again finds either no shard (and all its sources) or the shard (and
whatever of its sources is left, which is ignored).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, journal_path, list_run
from cliffwatch.records.journal import Header, JournalContent, read_journal
from cliffwatch.records.parquet import check_file, read_table, table_of, write_shard

ISSUED_KEY = "cliffwatch.issued"
_READ_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Fold:
    """A finished shard: its rows, the requests it issued, and those of them that have no end (id -> intended_ns)."""

    shard: int
    rows: int
    issued: int
    open: dict[int, int]
    header: Header | None
    damaged_lines: int


def fold_shard(run_dir: Path, shard: int) -> Fold:
    """Write `worker-NNN.parquet` from the shard's parts and journal, unless it is there; remove nothing.

    Raises:
        RunError: a part or the finished shard is damaged, a part is missing, or the disk is full.
    """
    final = final_path(run_dir, shard)
    journal = read_journal(journal_path(run_dir, shard))
    if not final.exists():
        _write_final(run_dir, shard, journal)
    metadata = check_file(final)
    in_final = request_ids(final) if journal.open else np.empty(0, np.int64)
    known = set(in_final.tolist())
    return Fold(
        shard=shard,
        rows=metadata.num_rows,
        issued=int((metadata.metadata or {}).get(ISSUED_KEY.encode(), metadata.num_rows)),
        open={request_id: at for request_id, at in journal.open.items() if request_id not in known},
        header=journal.header,
        damaged_lines=journal.damaged,
    )


def clear_shard(run_dir: Path, shard: int, *, journal: bool) -> None:
    """Remove what the finished shard replaced: its parts, and its journal where that is wanted. Raises RunError."""
    leftovers = list_run(run_dir).parts.get(shard, [])
    for path in [*leftovers, journal_path(run_dir, shard)] if journal else leftovers:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"cannot be removed: {error.strerror}", file=path) from error


def request_ids(path: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The request ids in a shard file."""
    ids: np.ndarray[tuple[int], np.dtype[np.int64]] = read_table(path, ["request_id"])["request_id"].to_numpy()
    return ids


def issued_ids(run_dir: Path, shard: int) -> set[int]:
    """The requests that a shard is known to have issued, while its worker may still live.

    The journal is read first: rows that move from it to a part meanwhile are found there.

    Raises:
        RunError: a file is damaged or cannot be read.
    """
    journal = read_journal(journal_path(run_dir, shard))
    for attempt in range(_READ_ATTEMPTS):
        try:
            parts = [request_ids(path) for path in list_run(run_dir).sources().get(shard, [])]
            break
        except FileNotFoundError:  # folded into the finished shard as we read
            if attempt == _READ_ATTEMPTS - 1:
                raise
    return {*journal.open, *journal.rows, *(int(number) for ids in parts for number in ids)}


def _write_final(run_dir: Path, shard: int, journal: JournalContent) -> None:
    parts = list_run(run_dir).parts.get(shard, [])
    in_parts = np.concatenate([np.empty(0, np.int64), *map(request_ids, parts)])
    if journal.header is not None and journal.header.in_parts > in_parts.size:
        raise RunError(
            f"parts of this shard are missing: its journal knows of {journal.header.in_parts} rows in parts, "
            f"{in_parts.size} are there",
            file=final_path(run_dir, shard),
        )
    # A crash between writing a part and emptying the journal leaves the same rows in both.
    twice = set(in_parts.tolist()) if journal.rows or journal.open else set()
    fresh = [row for request_id, row in journal.rows.items() if request_id not in twice]
    still_open = sum(request_id not in twice for request_id in journal.open)
    issued = in_parts.size + len(fresh) + still_open

    def tables() -> Iterator[pa.Table]:
        yield from map(read_table, parts)
        yield table_of(fresh)

    write_shard(final_path(run_dir, shard), tables(), {ISSUED_KEY: str(issued)})
