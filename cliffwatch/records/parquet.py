"""Rows to Parquet and back: files appear whole or not at all, and a damaged one is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import astuple, replace

from cliffwatch.errors import RunError
from cliffwatch.records.schema import ARROW_SCHEMA, LATER_COLUMNS, RequestRow

# Few large row groups: readers work through a row group at a time, and parts can be as small as one row.
_GROUP_ROWS = 122_880
_REPEATING_COLUMNS = [*(column.name for column in ARROW_SCHEMA if pa.types.is_dictionary(column.type)), "batch"]


def table_of(rows: Sequence[RequestRow]) -> pa.Table:
    """Rows as an Arrow table of `ARROW_SCHEMA`.

    A row whose gaps are beyond what a column holds (over 71 minutes, say) is kept without them, and says so.
    """
    try:
        return _table(rows)
    except (pa.ArrowException, OverflowError):
        return _table([row if _fits(row) else _without_gaps(row) for row in rows])


def _fits(row: RequestRow) -> bool:
    return all(0 <= gap < 2**32 for gaps in (row.chunk_gaps_us, row.prompt_ttfts_us) for gap in gaps or ())


def _without_gaps(row: RequestRow) -> RequestRow:
    warnings = [*(row.warnings or ()), "gaps between chunks are out of range and were not kept"]
    return replace(row, chunk_gaps_us=None, prompt_ttfts_us=None, warnings=warnings)


def _table(rows: Sequence[RequestRow]) -> pa.Table:
    if not rows:
        return ARROW_SCHEMA.empty_table()
    columns = [*zip(*map(astuple, rows), strict=True), [max(row.chunk_gaps_us or (), default=None) for row in rows]]
    arrays = [pa.array(values, type=column.type) for values, column in zip(columns, ARROW_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


def write_part(path: Path, rows: Sequence[RequestRow]) -> None:
    """Write a short-lived file: uncompressed and unencoded, since this is done between two requests of the load.

    Raises:
        RunError: the disk does not take it; nothing of it is left then.
    """
    with _appearing(path) as fresh:
        pq.write_table(table_of(rows), fresh, compression="none", use_dictionary=False, write_statistics=False)


def write_shard(path: Path, tables: Iterator[pa.Table], metadata: dict[str, str]) -> int:
    """Write a lasting file from tables, streaming, synced to the disk before it appears; returns its rows.

    Raises:
        RunError: the disk does not take it; nothing of it is left then.
    """
    schema = ARROW_SCHEMA.with_metadata({**(ARROW_SCHEMA.metadata or {}), **metadata})
    rows = 0
    with _appearing(path) as fresh:
        with pq.ParquetWriter(
            fresh, schema, compression="zstd", compression_level=1, use_dictionary=_REPEATING_COLUMNS
        ) as writer:
            for table in _regrouped(tables):
                writer.write_table(table, row_group_size=_GROUP_ROWS)
                rows += table.num_rows
        _sync(fresh)  # its sources are removed next
    return rows


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _regrouped(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        if count >= _GROUP_ROWS:
            yield pa.concat_tables(held)
            held, count = [], 0
    if count:
        yield pa.concat_tables(held)


@contextmanager
def _appearing(path: Path) -> Iterator[Path]:
    """A name to write to, that becomes `path` when all went well and is removed otherwise."""
    fresh = path.with_name(path.name + ".new")
    try:
        yield fresh
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise RunError(f"cannot be written: {error.strerror or error}", file=path) from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn what Arrow says about a damaged file into a RunError that names it; a vanished file stays an OSError."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RunError(f"is truncated or damaged: {first_line}", file=path, allowed="a Parquet shard") from error


def check_file(path: Path) -> pq.FileMetaData:
    """Read a shard's footer and compare its columns; one that an older version wrote may lack the later ones.

    Raises:
        RunError: the file is truncated, damaged, or has other columns than a run.
        FileNotFoundError: it is gone.
    """
    with naming(path):
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
    missing = [name for name in ARROW_SCHEMA.names if name not in schema.names and name not in LATER_COLUMNS]
    if missing:
        raise RunError("lacks columns of a run", file=path, field=", ".join(missing[:5]))
    foreign = [name for name in schema.names if name not in ARROW_SCHEMA.names]
    if foreign:
        raise RunError("has a column that no run has: damaged, or a later version's", file=path, value=foreign[0])
    return metadata


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A shard's rows, all columns of a run unless told otherwise; those that it lacks as null.

    Raises:
        RunError: the file is damaged.
        FileNotFoundError: it is gone.
    """
    with naming(path):
        table = pq.read_table(path, columns=None if columns is None else list(columns), partitioning=None)
        if columns is not None or len(table.schema) == len(ARROW_SCHEMA):
            return table
        whole = pa.concat_tables([ARROW_SCHEMA.empty_table(), table], promote_options="default")
        return whole.select(ARROW_SCHEMA.names)
