"""Measurements of other tools as rows of this one: a file of JSON lines, CSV or Parquet becomes the view `requests`.

One line is a request, or one sequence of a batch: lines with a `seq` that share their send time, batch and lengths are
one request, whose TTFT is that of its slowest prompt. Durations are seconds, unless a column's name ends in `_ms`,
`_us` or `_ns`. What the file does not tell stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from cliffwatch.errors import InputError
from cliffwatch.records.foreign_columns import DURATIONS, WHOLES, WORDS, Found, find_columns, quoted
from cliffwatch.records.reader import create_empty, create_view, new_database
from cliffwatch.records.schema import Outcome, Phase

MAX_DURATION_S = 86_400.0  # a longer one is in another unit
MAX_TOKENS = 100_000_000
_LINE_BYTES = 1_000_000
_READERS = {
    "jsonl": "read_json({}, format = 'newline_delimited', maximum_object_size = {})",
    "csv": "read_csv({}, header = true, max_line_size = {})",
    "parquet": "read_parquet({}, hive_partitioning = false)",
}
_KINDS = {"json": "jsonl", "ndjson": "jsonl", "jsonl": "jsonl", "csv": "csv", "parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A file that was read.

    Attributes:
        database: has the rows, as a table `kept`, and the view `requests` over it that a run's reader has.
        columns: the file's column behind each thing that was found.
        lines, requests: how many.
        zero_unix_ns: when the first one was sent, by the file's own clock; 0 where it has none.
        missing: what the file does not tell, of what is looked for.
    """

    database: duckdb.DuckDBPyConnection
    columns: Mapping[str, str]
    lines: int
    requests: int
    zero_unix_ns: int
    missing: tuple[str, ...]

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor with the view `requests`, as a run's reader lends it."""
        with self.database.cursor() as cursor:
            yield cursor


def read_foreign(path: Path) -> Foreign:
    """Read a file of measurements.

    Raises:
        InputError: it is of no known kind, cannot be read, lacks `input_tokens` or every latency, or a value is out of
            its range; the error names file, line, column and value.
    """
    database = new_database()
    kind = _kind(path)
    source = _READERS[kind].format(_literal(str(path)), _LINE_BYTES)
    try:
        database.execute(f"CREATE TABLE lines AS SELECT *, row_number() OVER () AS _line FROM {source}")  # noqa: S608
    except (duckdb.Error, UnicodeDecodeError) as error:
        said = "".join(letter for letter in str(error).splitlines()[0] if letter.isprintable())
        raise InputError(f"cannot be read as {kind}: {said[:300]}", file=path) from error
    described = database.execute("DESCRIBE lines").fetchall()
    # A column without any value is none.
    types = {name.lower(): (name, of) for name, of, *_ in described if of.strip('"') != "NULL"}
    found = find_columns(types, path)
    # In CSV the first line has the names.
    _check(database, found, path, first_line=2 if kind == "csv" else 1)
    create_empty(database)
    database.execute(_insertion(found))
    create_view(database, "kept")
    lines, requests = (
        database.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,)  # noqa: S608
        for table in ("lines", "kept")
    )
    zero_unix_ns = 0
    if "sent" in found:
        (zero_s,) = database.execute(f"SELECT min({found['sent'][1]}) FROM lines").fetchone() or (None,)  # noqa: S608
        zero_unix_ns = round((zero_s or 0) * 1e9)
    database.execute("DROP TABLE lines")
    wanted = ("sent", *DURATIONS, *WHOLES, *WORDS)
    missing = tuple(name for name in wanted if name not in found)
    columns = {name: column for name, (column, _) in found.items()}
    return Foreign(database, columns, lines[0], requests[0], zero_unix_ns, missing)


def _kind(path: Path) -> str:
    names = path.name.lower().removesuffix(".gz").rsplit(".", 1)
    kind = _KINDS.get(names[-1])
    if len(names) < 2 or kind is None or (kind == "parquet" and path.name.lower().endswith(".gz")):
        raise InputError("is of no known kind", file=path, allowed=".jsonl, .csv (each also .gz), .parquet")
    if not path.is_file():
        raise InputError("is no file", file=path, allowed="a run folder, or a file of measurements")
    return kind


def _check(connection: duckdb.DuckDBPyConnection, found: Found, path: Path, first_line: int) -> None:
    """Every value in its range, or the first one that is not, with its line."""
    durations = dict.fromkeys(("ttft", "itl", "e2e", "whole"), (f"0 to {MAX_DURATION_S:g} s", 0.0, MAX_DURATION_S))
    tokens = f"whole, 1 to {MAX_TOKENS}"
    ranges = durations | {
        "input_tokens": (tokens, 1, MAX_TOKENS),
        "batch": (tokens, 1, MAX_TOKENS),
        "output_tokens": (f"whole, 0 to {MAX_TOKENS}", 0, MAX_TOKENS),
    }
    for what, (allowed, least, most) in ranges.items():
        if what not in found:
            continue
        column, value = found[what]
        outside = f"isnan({value}::DOUBLE) OR {value} < {least} OR {value} > {most}"
        if what in WHOLES:
            outside += f" OR {quoted(column)} <> {value}"
        if what == "input_tokens":
            outside += f" OR {value} IS NULL"
        query = f"SELECT _line, {quoted(column)} FROM lines WHERE {outside} ORDER BY _line LIMIT 1"  # noqa: S608
        row = connection.execute(query).fetchone()
        if row is not None:
            line = int(row[0]) + first_line - 1
            raise InputError(f"line {line} is out of range", file=path, field=column, value=row[1], allowed=allowed)


def _insertion(found: Found) -> str:
    """From `lines` into `kept`: groups of sequences, then the columns of a run."""

    def value(what: str, otherwise: str = "NULL") -> str:
        return found[what][1] if what in found else otherwise

    grouped = "seq" in found and "sent" in found
    same = ["sent", "run", "rep", "phase", "cache", "batch", "input_tokens", "model"] if grouped else []
    key = ", ".join(["_line"] if not grouped else [value(what) for what in same if what in found])
    order = f"ORDER BY {value('seq', '_line')}"
    bad = f"{value('error')} IS NOT NULL OR coalesce({value('status')}, 200) NOT BETWEEN 200 AND 299"
    start = f"min({value('sent')}) - min(min({value('sent')})) OVER ()" if "sent" in found else "NULL"
    whole = f"coalesce(max({value('whole')}), max({value('e2e')}), max({value('ttft')}))"
    columns = {
        "request_id": "(row_number() OVER (ORDER BY min(_line)) - 1)::BIGINT",
        "worker": "0",
        "phase": f"CASE WHEN any_value({value('phase')}) IN ('warm', 'warmup') THEN '{Phase.WARMUP.value}'"
        f" ELSE '{Phase.MEASURED.value}' END",
        "endpoint": "'completions'",
        "model": f"coalesce(any_value({value('model')}), 'unknown')",
        "batch": f"coalesce(any_value({value('batch')}), count(*))::INTEGER",
        "cache": f"coalesce(any_value({value('cache')}), 'unknown')",
        "input_tokens": f"max({value('input_tokens')})::INTEGER",
        "max_output_tokens": f"coalesce(max({value('output_tokens')}), 0)::INTEGER",
        "output_tokens": f"sum({value('output_tokens')})::BIGINT",
        "intended_ns": f"coalesce(({start} - coalesce(max({value('lag')}), 0)) * 1e9, min(_line))::BIGINT",
        "sent_ns": f"coalesce(({start}) * 1e9, min(_line))::BIGINT",
        "itl_s": f"avg({value('itl')})",
        "chunks": f"coalesce(sum({value('chunks')}), 0)::INTEGER",
        "stalls": "0",
        "prompt_ttfts_us": f"list(round({value('ttft')} * 1e6)::UINTEGER {order})" if grouped else "NULL::UINTEGER[]",
        "outcome": f"CASE WHEN NOT bool_or({bad}) THEN '{Outcome.OK.value}'"
        f" WHEN max({value('status')}) = 429 THEN '{Outcome.HTTP_429.value}'"
        f" WHEN max({value('status')}) BETWEEN 400 AND 499 THEN '{Outcome.HTTP_4XX.value}'"
        f" WHEN max({value('status')}) >= 500 THEN '{Outcome.HTTP_5XX.value}' ELSE '{Outcome.STREAM_ERROR.value}' END",
        "status": f"max({value('status')})::INTEGER",
        "error": f"left(any_value({value('error')}), 300)",
        "bytes_received": "0",
        "tenant": f"any_value({value('tenant')})",
        "replica": f"any_value({value('replica')})",
        "_ttft": f"max({value('ttft')})",
        "_e2e": f"max({value('e2e')})",
        "_whole": whole,
    }
    chosen = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    after = {"first_token_ns": "_ttft", "last_token_ns": "_e2e", "ended_ns": "_whole"}
    ends = ", ".join(f"sent_ns + ({span} * 1e9)::BIGINT AS {name}" for name, span in after.items())
    stored = f"SELECT * EXCLUDE ({', '.join(after.values())}), {ends} FROM (SELECT {chosen} FROM lines GROUP BY {key})"  # noqa: S608
    return f"INSERT INTO kept BY NAME {stored}"


def _literal(text: str) -> str:
    """A path as it is, not as a pattern."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", text).replace("'", "''") + "'"
