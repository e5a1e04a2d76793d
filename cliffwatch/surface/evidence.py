"""What is known of each point of a curve beside its latency: prompt tokens, sequences, the engine's readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cliffwatch.records.conditions import OK
from cliffwatch.records.foreign import Foreign
from cliffwatch.records.reader import RunReader
from cliffwatch.surface.bins import lay
from cliffwatch.surface.cause import Point
from cliffwatch.surface.dimensions import dimension
from cliffwatch.surface.grid import Question, lay_out, session
from cliffwatch.surface.scrapes import Array, Scrapes, seen_by

# What the server found cached counts for nothing; where it did not say, no requests that share a prefix are looked at.
_TO_COMPUTE = """CASE WHEN cached_input_tokens IS NOT NULL OR cache IN ('none', 'unknown')
    THEN input_tokens::BIGINT * batch - coalesce(cached_input_tokens, 0) END"""
# How many sequences run together is known where the axis is about it.
_SEQUENCES = {"batch": "batch", "concurrency": "concurrency * batch"}


def evidence(
    source: RunReader | Foreign, question: Question, engines: Sequence[Scrapes]
) -> Mapping[tuple[str, float], Point]:
    """By label of the column and value of the row (a bin's middle): what speaks for or against a cause there.

    Tokens and sequences are medians over the point's requests. Readings are of the scrapes while one of the requests
    was under way.

    Raises:
        InputError, RunError: as `samples`.
    """
    zero_ns = source.manifest.t0_unix_ns if isinstance(source, RunReader) else source.zero_unix_ns
    with session(source) as connection:
        layout = lay_out(connection, question)
        sql = f"""
            SELECT {layout.place("rows")} AS r, {layout.place("columns")} AS c, count(*),
                median({_TO_COMPUTE}),
                median({_SEQUENCES.get(question.rows, "NULL")}),
                list(sent_ns) FILTER (timed), list(ended_ns) FILTER (timed)
            FROM (SELECT *, coalesce(ended_ns >= sent_ns, FALSE) AS timed FROM {layout.table})
            WHERE {layout.condition} AND {OK} GROUP BY r, c
        """  # noqa: S608  a Question holds names from tables only
        found = [row for row in connection.execute(sql).fetchall() if row[0] is not None and row[1] is not None]
    rows, columns = (
        lay(name, dimension(name, side), bins, (row[at] for row in found), side)
        for at, (side, (name, bins)) in enumerate(layout.sides.items())
    )
    middles = dict(zip(rows.numbers, rows.middles or (), strict=False))
    labels = dict(zip(columns.numbers, columns.labels, strict=True))
    return {
        (labels[column], middles[row]): Point(
            requests, tokens, sequences, seen_by(engines, *(_unix_s(times, zero_ns) for times in (sent, ended)))
        )
        for row, column, requests, tokens, sequences, sent, ended in found
        if row in middles
    }


def _unix_s(times_ns: list[int] | None, zero_ns: int) -> Array:
    return (np.array(times_ns or [], dtype=np.int64) + zero_ns) / 1e9
