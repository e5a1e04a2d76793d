"""A trace as rows in order of time, read as a stream: memory does not grow with the file."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.traces.clock import Clock, choose_clock
from cliffwatch.workload.traces.columns import Head, RowFormat
from cliffwatch.workload.traces.formats import choose_format, read_head
from cliffwatch.workload.traces.rows import RawRow, Repairs, TraceRow, refuse
from cliffwatch.workload.traces.servegen import ClientSource, is_servegen

SAMPLE = 1000  # rows from which the unit of times is told
WINDOW = 1 << 16  # rows that are put in order of time; a file that is more out of order is refused
WINDOW_BLOCKS = 1 << 20  # block ids held meanwhile, so that long prompts do not take all memory
UNTIMED = 1000  # rows in succession that may lack a time


class Source(Protocol):
    """A trace as requests in order of time. One that `draws` them takes the workload's rate scale into account."""

    @property
    def draws(self) -> bool: ...

    @property
    def block_tokens(self) -> int: ...

    def check(self) -> None: ...

    def rows(self, repairs: Repairs, rng: np.random.Generator, /) -> Iterator[TraceRow]: ...


@dataclass(frozen=True)
class RowSource:
    """A file with one request a row."""

    path: Path
    head: Head
    format: RowFormat
    spec: TraceArrivals
    draws: bool = False

    @property
    def block_tokens(self) -> int:
        return self.spec.block_tokens or self.format.block_tokens

    def rows(self, repairs: Repairs, _rng: np.random.Generator) -> Iterator[TraceRow]:
        """All rows from the first on, ties in the order of the file. Raises InputError at a line of unclear meaning."""
        return _in_order(self._in_file_order(repairs), self.path, repairs)

    def check(self) -> None:
        """Read the first rows. Raises InputError where the file is no such trace."""
        for _ in islice(self._in_file_order(Repairs()), SAMPLE):
            pass

    def _in_file_order(self, repairs: Repairs) -> Iterator[TraceRow]:
        raw = self.format.rows(self.path, self.head, repairs, block_tokens=self.block_tokens)
        sample = list(islice(raw, SAMPLE))
        if not sample:
            raise InputError("holds no request", file=self.path)
        column = self.format.time_column(self.head)
        clock = choose_clock(self.path, column, sample, repairs, asked=self.spec.time_unit, usual=self.format.unit)
        return _timed(chain(sample, raw), clock, self.path, repairs)


def open_trace(spec: TraceArrivals) -> Source:
    """The source of a trace. Raises InputError where its head is none of a trace."""
    path = Path(spec.file)
    if spec.format == "servegen" or (spec.format == "auto" and is_servegen(path)):
        return ClientSource(path, spec)
    return open_rows(spec)


def open_rows(spec: TraceArrivals) -> RowSource:
    """The source of a trace file with one request a row. Raises InputError where its head is none of such a trace."""
    path = Path(spec.file)
    head = read_head(path)
    return RowSource(path, head, choose_format(spec, path, head), spec)


def _timed(raw: Iterator[RawRow], clock: Clock, path: Path, repairs: Repairs) -> Iterator[TraceRow]:
    """Rows with their times in nanoseconds. A missing time is certain only between two rows of one time."""
    untimed: list[RawRow] = []
    last_ns: int | None = None
    for row in raw:
        if row.time is None or (isinstance(row.time, str) and not row.time.strip()):
            untimed.append(row)
            if last_ns is None or len(untimed) > UNTIMED:
                raise _no_time(path, untimed[0])
            continue
        time_ns = clock(row)
        if untimed:
            if time_ns != last_ns:
                raise _no_time(path, untimed[0])
            for waiting in untimed:
                repairs.note("a missing time is that of the rows before and after, which are alike", waiting.line)
                yield _row(waiting, time_ns)
            untimed.clear()
        last_ns = time_ns
        yield _row(row, time_ns)
    if untimed:
        raise _no_time(path, untimed[0])


def _row(raw: RawRow, time_ns: int) -> TraceRow:
    return TraceRow(time_ns, raw.input_tokens, raw.output_tokens, raw.blocks, raw.line)


def _no_time(path: Path, row: RawRow) -> InputError:
    return refuse(path, row.line, "has no time", allowed="a time; only between two rows of one time is it certain")


def _in_order(rows: Iterator[TraceRow], path: Path, repairs: Repairs) -> Iterator[TraceRow]:
    """Rows by time within a window; times count from the earliest."""
    heap: list[tuple[int, int, TraceRow]] = []
    held = 0
    highest = emitted = float("-inf")
    first: int | None = None

    def pop() -> TraceRow:
        nonlocal first
        earliest = heapq.heappop(heap)[2]
        first = earliest.time_ns if first is None else first
        return earliest._replace(time_ns=earliest.time_ns - first)

    for row in rows:
        if row.time_ns < highest:
            repairs.note("a row out of order is put at its time", row.line)
            if row.time_ns < emitted:
                allowed = f"at most {WINDOW} rows from its place; sort the file by time"
                raise refuse(path, row.line, "is too far out of order", allowed=allowed)
        highest = max(highest, row.time_ns)
        heapq.heappush(heap, (row.time_ns, row.line, row))
        held += len(row.blocks)
        while len(heap) > WINDOW or held > WINDOW_BLOCKS:
            emitted = heap[0][0]
            held -= len(heap[0][2].blocks)
            yield pop()
    while heap:
        yield pop()
