"""The schedule: a pure, reproducible stream of planned requests, computed block by block and cut into shards.

Every random quantity has a generator of its own, named and seeded from the workload's seed: changing the lengths leaves
the arrivals as they were. Shard i of n takes the requests i, i + n, i + 2n, ... of the one stream, so any number of
workers sends the same traffic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cliffwatch.errors import InputError
from cliffwatch.records.schema import Phase
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.arrivals import ARRIVALS
from cliffwatch.workload.batches import draw_batches
from cliffwatch.workload.lengths import LENGTHS
from cliffwatch.workload.parts import Length, TraceLength
from cliffwatch.workload.spec import Workload
from cliffwatch.workload.traces.replay import Recorded, replay
from cliffwatch.workload.traces.rows import Repairs

BLOCK = 4096
HASHED_REQUESTS = 100_000
PHASES = (Phase.COLD, Phase.WARMUP, Phase.MEASURED)
NO_PREFIX = -1
Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request to send.

    Lengths are tokens per prompt. `intended_ns` counts from the start of the load and is 0 in a closed loop, where a
    user's freedom decides. The first `prefix_tokens` of each prompt are those of `prefix_group`; or, where there are
    `prefix_blocks`, its successive parts of `prefix_block_tokens` each have these ids (equal ids, equal text), and
    `prefix_tokens` are those that an earlier prompt began with too.
    """

    request_id: int
    intended_ns: int
    input_tokens: int
    output_tokens: int
    batch: int
    cache: str
    prefix_group: int | None
    phase: Phase
    endpoint: str
    prefix_tokens: int = 0
    prefix_blocks: tuple[int, ...] = ()
    prefix_block_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """Consecutive planned requests as columns of equal length; `prefix_group` is -1 where none, `phase` an index
    into PHASES. `prefix_blocks` is empty unless a trace has them."""

    request_id: Column
    intended_ns: Column
    input_tokens: Column
    output_tokens: Column
    batch: Column
    prefix_group: Column
    prefix_tokens: Column
    phase: Column
    prefix_blocks: tuple[tuple[int, ...], ...] = field(default=(), kw_only=True)
    prefix_block_tokens: int = field(default=0, kw_only=True)

    def __len__(self) -> int:
        return len(self.request_id)

    @property
    def shared(self) -> NDArray[np.bool_]:
        """Which requests begin as others do."""
        shared: NDArray[np.bool_] = (self.prefix_group != NO_PREFIX) | (self.prefix_tokens > 0)
        return shared

    def columns(self) -> tuple[Column, ...]:
        return (
            self.request_id,
            self.intended_ns,
            self.input_tokens,
            self.output_tokens,
            self.batch,
            self.prefix_group,
            self.prefix_tokens,
            self.phase,
        )


def plan_blocks(workload: Workload, *, size: int = BLOCK, repairs: Repairs | None = None) -> Iterator[PlanBlock]:
    """The whole stream as columns; endless for a closed loop that only time ends. The same stream for any `size`.

    What is set right in a trace is noted in `repairs`. Raises InputError at a line of it that cannot be used.
    """
    rng = {name: _generator(workload.seed, name) for name in ("arrivals", "input", "output", "batch", "cache")}
    limit = workload.requests
    end_ns = None if workload.duration is None or not workload.open_loop else round(workload.duration * 1e9)
    first = 0
    for arrived in _arrived(workload, rng["arrivals"], size, repairs):
        times = arrived.times_ns if isinstance(arrived, Recorded) else arrived
        count = len(times) if limit is None else min(len(times), limit - first)
        if end_ns is not None:
            count = min(count, int(np.searchsorted(times, end_ns)))
        if count:
            recorded = arrived.cut(count) if isinstance(arrived, Recorded) else None
            yield _block(workload, rng, first, times[:count], recorded)
        first += len(times)
        if count < len(times) or first == limit:
            return


def schedule(workload: Workload, *, shard: int = 0, shards: int = 1) -> Iterator[PlannedRequest]:
    """Planned requests of one shard in order of time, lazily. Raises ValueError unless 0 <= shard < shards."""
    if not 0 <= shard < shards:
        raise ValueError(f"shard {shard} of {shards}")
    return _shard(workload, shard, shards)


def phase_at(workload: Workload, request_id: int, elapsed_ns: int) -> Phase:
    """The part of the run that a request sent `elapsed_ns` after the start belongs to."""
    return PHASES[int(_phase_index(workload, request_id, elapsed_ns))]


def endpoint_of(workload: Workload, batch: int) -> str:
    """The endpoint that takes a request of `batch` prompts."""
    if workload.endpoint == "auto":
        return "chat" if batch == 1 else "completions"
    return workload.endpoint


def split_users(users: int, shard: int, shards: int) -> int:
    """How many of a closed loop's users this shard runs; the parts differ by one at most and sum to `users`."""
    if not 0 <= shard < shards:
        raise ValueError(f"shard {shard} of {shards}")
    return users // shards + (shard < users % shards)


def schedule_hash(workload: Workload) -> str:
    """SHA-256 (hex) over the specification and the first 100,000 planned requests: equal hashes, equal traffic.

    Raises InputError where a trace's file cannot be read, or one of these requests' lines not used.
    """
    specification = workload.model_dump(mode="json")
    if isinstance(workload.arrivals, TraceArrivals):
        del specification["arrivals"]["file"]  # the same trace elsewhere is the same traffic
    digest = hashlib.sha256(json.dumps(specification, sort_keys=True, separators=(",", ":")).encode())
    left = HASHED_REQUESTS
    for block in plan_blocks(workload):
        rows = np.stack([column[:left] for column in block.columns()], axis=1)
        digest.update(rows.astype("<i8").tobytes())
        if any(block.prefix_blocks):
            digest.update(repr(block.prefix_blocks[:left]).encode())
        left -= len(rows)
        if left <= 0:
            break
    return digest.hexdigest()


def _shard(workload: Workload, shard: int, shards: int) -> Iterator[PlannedRequest]:
    for block in plan_blocks(workload):
        offset = (shard - int(block.request_id[0])) % shards
        blocks = block.prefix_blocks[offset::shards] or repeat(())
        mine = zip(*(column[offset::shards].tolist() for column in block.columns()), strict=True)
        for (index, intended, tokens, output, batch, group, prefix, phase), ids in zip(mine, blocks, strict=False):
            yield PlannedRequest(
                request_id=index,
                intended_ns=intended,
                input_tokens=tokens,
                output_tokens=output,
                batch=batch,
                cache="none" if group == NO_PREFIX and not (ids and prefix) else "prefix",
                prefix_group=None if group == NO_PREFIX else group,
                phase=PHASES[phase],
                endpoint=endpoint_of(workload, batch),
                prefix_tokens=prefix,
                prefix_blocks=ids,
                prefix_block_tokens=block.prefix_block_tokens if ids else 0,
            )


def _arrived(
    workload: Workload, rng: np.random.Generator, size: int, repairs: Repairs | None
) -> Iterator[Column | Recorded]:
    arrivals = workload.arrivals
    if isinstance(arrivals, TraceArrivals):
        return replay(arrivals, rng, size, repairs)
    return ARRIVALS[arrivals.kind](arrivals, rng, size)


def _lengths(workload: Workload, name: str, rng: np.random.Generator, count: int, recorded: Column | None) -> Column:
    spec: Length = getattr(workload, name)
    if recorded is None or not isinstance(spec, TraceLength):
        return LENGTHS[spec.kind](spec, rng, count)
    if not recorded.all():
        raise InputError("are not in the trace", field=name, allowed="lengths of another kind in the workload file")
    return recorded


def _block(
    workload: Workload, rng: dict[str, np.random.Generator], first: int, times: Column, recorded: Recorded | None
) -> PlanBlock:
    count = len(times)
    ids = np.arange(first, first + count)
    tokens = _lengths(workload, "input_tokens", rng["input"], count, recorded.input_tokens if recorded else None)
    output = _lengths(workload, "output_tokens", rng["output"], count, recorded.output_tokens if recorded else None)
    groups = _prefix_groups(workload, rng["cache"], count)
    shared = np.where(groups == NO_PREFIX, 0, np.floor(tokens * workload.cache.prefix_fraction)).astype(np.int64)
    blocks: tuple[tuple[int, ...], ...] = ()
    if recorded and isinstance(workload.input_tokens, TraceLength):
        blocks = recorded.blocks
        known = np.fromiter(map(bool, blocks), dtype=bool, count=count)
        groups, shared = np.where(known, NO_PREFIX, groups), np.where(known, recorded.shared_tokens, shared)
    return PlanBlock(
        request_id=ids,
        intended_ns=times,
        input_tokens=tokens,
        output_tokens=output,
        batch=draw_batches(workload.batch, tokens, rng["batch"]),
        prefix_group=groups,
        prefix_tokens=shared,
        phase=_phase_index(workload, ids, times),
        prefix_blocks=blocks,
        prefix_block_tokens=recorded.block_tokens if recorded else 0,
    )


def _prefix_groups(workload: Workload, rng: np.random.Generator, count: int) -> Column:
    cache = workload.cache
    shared, group = rng.random((count, 2)).T
    return np.where(shared < cache.prefix_share, np.floor(group * cache.groups), NO_PREFIX).astype(np.int64)


def _phase_index(workload: Workload, request_id: Any, elapsed_ns: Any) -> Any:
    """Index into PHASES, for single numbers and for columns alike."""
    warm_from = workload.cold_start.requests
    measured_from = warm_from + workload.warmup.requests
    measured = (request_id >= measured_from) & (elapsed_ns >= round(workload.warmup.duration * 1e9))
    return (request_id >= warm_from) * 1 + measured * 1


def _generator(seed: int, name: str) -> np.random.Generator:
    """An independent generator for one named quantity."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, key])))
