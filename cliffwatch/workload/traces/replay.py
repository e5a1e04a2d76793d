"""A trace as arrivals: cut, stretched, thinned or multiplied, in blocks of columns."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.parts import MAX_DURATION_S
from cliffwatch.workload.traces.reader import open_trace
from cliffwatch.workload.traces.rows import Repairs, TraceRow

REPLAY_BLOCK = 256  # rows are made one by one: a larger block would keep a worker from its sockets
_SEEN_BITS = 29  # 64 MiB of bits, which the system hands out as they are touched
_COPY = 1 << 64  # added to the block ids of a request's copies: they share among themselves, not with the first
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Consecutive requests of a trace. `shared_tokens` of each prompt stood at the start of an earlier prompt too."""

    times_ns: Ints
    input_tokens: Ints
    output_tokens: Ints
    blocks: tuple[tuple[int, ...], ...]
    shared_tokens: Ints
    block_tokens: int

    def cut(self, count: int) -> Recorded:
        columns = (self.times_ns[:count], self.input_tokens[:count], self.output_tokens[:count])
        return Recorded(*columns, self.blocks[:count], self.shared_tokens[:count], self.block_tokens)


def replay(
    spec: TraceArrivals, rng: np.random.Generator, size: int, repairs: Repairs | None = None
) -> Iterator[Recorded]:
    """The arrivals of a trace in blocks of at most `size`.

    Raises:
        InputError: a line cannot be used, nothing is left in the slice, or a request comes after 30 days.
    """
    source = open_trace(spec)
    rows = _sliced(source.rows(Repairs() if repairs is None else repairs, rng), spec)
    rows = _scaled(rows, spec.time_scale, 1.0 if source.draws else spec.rate_scale, rng)
    seen = _Seen()
    empty = True
    while block := list(islice(rows, min(size, REPLAY_BLOCK))):
        empty = False
        if block[-1].time_ns > MAX_DURATION_S * 1e9:
            raise InputError(
                "goes on for over 30 days",
                file=spec.file,
                field=f"line {block[-1].line}",
                allowed="a slice by start and end, or a smaller time_scale",
            )
        times, inputs, outputs = np.array([row[:3] for row in block], dtype=np.int64).T
        shared = [min(row.input_tokens, seen.leading(row.blocks) * source.block_tokens) for row in block]
        blocks = tuple(row.blocks for row in block)
        yield Recorded(times, inputs, outputs, blocks, np.array(shared, dtype=np.int64), source.block_tokens)
    if empty:
        raise InputError("has no request in the slice that was asked for", file=spec.file, field="start")


def anchored(spec: TraceArrivals, folder: Path) -> TraceArrivals:
    """The trace with its file found from `folder`, where the workload file stands; its head and first rows checked."""
    there = spec.model_copy(update={"file": str(folder / Path(spec.file).expanduser())})
    open_trace(there).check()
    return there


def _sliced(rows: Iterable[TraceRow], spec: TraceArrivals) -> Iterator[TraceRow]:
    start_ns = round(spec.start * 1e9)
    end_ns = None if spec.end is None else round(spec.end * 1e9)
    for row in rows:
        if end_ns is not None and row.time_ns >= end_ns:
            return
        if row.time_ns >= start_ns:
            yield row._replace(time_ns=row.time_ns - start_ns)


def _scaled(
    rows: Iterator[TraceRow], time_scale: float, rate_scale: float, rng: np.random.Generator
) -> Iterator[TraceRow]:
    """Times by `time_scale`; each row so often as `rate_scale` says, copies spread over the time to the next row."""
    sure, chance = divmod(rate_scale, 1.0)
    previous: TraceRow | None = None
    for row in rows:
        row = row if time_scale == 1 else row._replace(time_ns=round(row.time_ns * time_scale))
        if rate_scale == 1:
            yield row
            continue
        if previous is not None:
            yield from _copies(previous, row.time_ns, int(sure) + (chance > 0 and rng.random() < chance))
        previous = row
    if previous is not None:
        yield from _copies(previous, previous.time_ns, int(sure) + (chance > 0 and rng.random() < chance))


def _copies(row: TraceRow, next_ns: int, count: int) -> Iterator[TraceRow]:
    for copy in range(count):
        time_ns = row.time_ns + (next_ns - row.time_ns) * copy // count
        blocks = row.blocks if not copy else tuple(one + copy * _COPY for one in row.blocks)
        yield row._replace(time_ns=time_ns, blocks=blocks)


class _Seen:
    """Block ids that came before: exact for ids below 2^29, which traces that number their blocks stay within; other
    ids share a bit with others now and then. Only the label of a request hangs on it, not what is sent."""

    def __init__(self) -> None:
        self._bits = mmap.mmap(-1, 1 << (_SEEN_BITS - 3))  # zeros, unlike a bytearray's not written until touched

    def leading(self, blocks: tuple[int, ...]) -> int:
        """How many of the first blocks were seen; from now on all of them are."""
        bits, leading, unbroken = self._bits, 0, True
        for one in blocks:
            place, bit = divmod(hash(one) & ((1 << _SEEN_BITS) - 1), 8)
            if bits[place] & (1 << bit):
                leading += unbroken
            else:
                unbroken = False
                bits[place] |= 1 << bit
        return leading
