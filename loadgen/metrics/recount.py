"""What workers have not told this master of is counted from their rows: those of dead ones, or before its time."""

from __future__ import annotations

from pathlib import Path

import gevent
import msgspec

from cliffwatch.records.counted import MergedCounts, RowCounts
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import RequestRow

_AT_ONCE = 2000
_UNUSED = {"chunk_gaps_us", "prompt_ttfts_us", "warnings"}
_COLUMNS = [name for name in RequestRow.__struct_fields__ if name not in _UNUSED]


def recount(run_dir: Path, counts: MergedCounts) -> None:
    """Count the rows of every worker that has more of them than it said; nothing is ever taken back.

    Raises RunError where the closed run cannot be read.
    """
    with RunReader(run_dir).session() as connection:
        recorded = connection.execute("SELECT worker, count(*) FROM requests GROUP BY worker").fetchall()
        for shard, rows in recorded:
            if rows <= counts.requests_of(shard):
                continue
            fresh = RowCounts(counts.edges)
            sql = f"SELECT {', '.join(_COLUMNS)} FROM requests WHERE worker = ?"  # noqa: S608  our own column names
            connection.execute(sql, [shard])
            while some := connection.fetchmany(_AT_ONCE):
                for values in some:
                    fresh.count(msgspec.convert(dict(zip(_COLUMNS, values, strict=True)), RequestRow))
                gevent.sleep(0)
            counts.take(shard, fresh.counted())
