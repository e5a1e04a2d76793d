"""Traces that have one request a row, in CSV or JSON lines: which column is what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from cliffwatch.errors import InputError
from cliffwatch.workload.traces.clock import Unit
from cliffwatch.workload.traces.lines import csv_records, json_records
from cliffwatch.workload.traces.rows import RawRow, Repairs, refuse, whole_tokens

Container = Literal["csv", "jsonl"]


@dataclass(frozen=True)
class Head:
    """What the beginning of a file says: how it is written, and its columns (of JSON, the first object's keys)."""

    container: Container
    columns: tuple[str, ...]


@dataclass(frozen=True)
class RowFormat:
    """A format by its column names.

    Attributes:
        containers: how the file may be written.
        time, input, output, blocks: names that the column may have; the first that is there counts. Case and blanks
            around do not matter.
        marks: further columns that only this format has; without them a file is not recognised as it.
        unit: of its times, where the format's documents say; None: told from the numbers.
        block_tokens: tokens of a block of the prompt.
        failed: whether a row without an answer is a request that failed in the recording: it is left out.
    """

    name: str
    containers: tuple[Container, ...]
    time: tuple[str, ...]
    input: tuple[str, ...]
    output: tuple[str, ...]
    blocks: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    unit: Unit | None = None
    block_tokens: int = 512
    failed: bool = False

    def recognises(self, head: Head) -> bool:
        """Whether a file with this head is of this format."""
        there = {_plain(column) for column in head.columns}
        needed = (self.time, self.input, self.output)
        return (
            head.container in self.containers
            and all(_plain(mark) in there for mark in self.marks)
            and all(any(_plain(name) in there for name in names) for names in needed)
        )

    def time_column(self, head: Head) -> str:
        """The column of times as the file names it."""
        return _find(head.columns, self.time) or self.time[0]

    def rows(self, path: Path, head: Head, repairs: Repairs, *, block_tokens: int) -> Iterator[RawRow]:
        """Rows in the order of the file. Raises InputError for a head or line that cannot be used."""
        named = {"time": self.time, "input tokens": self.input, "output tokens": self.output}
        found = {what: _find(head.columns, names) for what, names in named.items()}
        if absent := [what for what, column in found.items() if column is None]:
            raise InputError(
                f"has no column for {' and '.join(absent)} (format {self.name})",
                file=path,
                field="line 1",
                value=", ".join(head.columns),
                allowed="; ".join(f"{what}: {' or '.join(names)}" for what, names in named.items()),
            )
        blocks = None
        if head.container == "jsonl" and self.blocks:  # the first object need not have any
            blocks = _find(head.columns, self.blocks) or self.blocks[0]
        columns = [*found.values(), blocks]
        picked = _from_csv if head.container == "csv" else _from_json
        for line, (time, tokens_in, tokens_out, ids) in picked(path, repairs, head.columns, columns):
            row = RawRow(
                line,
                time,
                whole_tokens(tokens_in, "input length", file=path, line=line, repairs=repairs),
                whole_tokens(tokens_out, "output length", file=path, line=line, repairs=repairs),
                () if not ids else _ids(ids, path, line),
            )
            if (kept := self._answered(row, path, repairs)) is not None:
                _check_blocks(kept, block_tokens, path)
                yield kept

    def _answered(self, row: RawRow, path: Path, repairs: Repairs) -> RawRow | None:
        if self.failed and not row.output_tokens:
            repairs.note("a request that failed when it was recorded (no answer) is left out", row.line)
            return None
        if not row.input_tokens:
            raise refuse(path, row.line, "input length is 0", allowed="1 token at least")
        if not row.output_tokens:
            repairs.note("an answer of 0 tokens is asked for as 1 token, the least a server gives", row.line)
            return row._replace(output_tokens=1)
        return row


Picked = Iterator[tuple[int, Sequence[Any]]]


def _from_csv(path: Path, repairs: Repairs, header: Sequence[str], columns: Sequence[str | None]) -> Picked:
    places = [None if column is None else header.index(column) for column in columns]
    records = csv_records(path, repairs)
    next(records)
    for line, fields in records:
        yield line, [None if place is None else fields[place] for place in places]


def _from_json(path: Path, repairs: Repairs, _header: Sequence[str], columns: Sequence[str | None]) -> Picked:
    for line, record in json_records(path, repairs):
        yield line, [None if column is None else record.get(column) for column in columns]


def _find(columns: Sequence[str], names: Sequence[str]) -> str | None:
    plain = {_plain(column): column for column in columns}
    return next((plain[_plain(name)] for name in names if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return name.strip().casefold()


def _ids(value: Any, path: Path, line: int) -> tuple[int, ...]:
    if isinstance(value, list):
        if all(type(one) is int for one in value):
            return tuple(value)
        if all(type(one) is str for one in value):
            return tuple(int.from_bytes(blake2b(one.encode(), digest_size=8).digest(), "little") for one in value)
    raise refuse(path, line, "block ids are no list of ids", value=value, allowed="a list of whole numbers or of texts")


def _check_blocks(row: RawRow, block_tokens: int, path: Path) -> None:
    if len(row.blocks) > -(-row.input_tokens // block_tokens):
        raise refuse(
            path,
            row.line,
            f"{len(row.blocks)} blocks of {block_tokens} tokens are more than its {row.input_tokens} tokens",
            allowed="the right block_tokens",
        )
