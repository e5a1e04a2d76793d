"""The schedule: a pure, reproducible stream of planned requests, computed block by block and cut into shards.

Every random quantity has a generator of its own, named and seeded from the workload's seed: changing the lengths leaves
the arrivals as they were. Shard i of n takes the requests (or sessions, whole) i, i + n, i + 2n, ... of the one stream,
so any number of workers sends the same traffic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.records.schema import Phase
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.arrivals import ARRIVALS
from cliffwatch.workload.batches import draw_batches
from cliffwatch.workload.lengths import LENGTHS, draw_index
from cliffwatch.workload.parts import Length, TraceLength
from cliffwatch.workload.plan import EXTRA_COLUMNS, MIXES, NO_PREFIX, PHASES, Column, PlanBlock, PlannedRequest
from cliffwatch.workload.session_parts import Sessions
from cliffwatch.workload.sessions import draw_turns, named_generator
from cliffwatch.workload.spec import AUTO, CHAT, Workload
from cliffwatch.workload.traces.replay import Recorded, replay
from cliffwatch.workload.traces.rows import Repairs

__all__ = [
    "PlannedRequest",
    "endpoint_of",
    "phase_at",
    "plan_blocks",
    "schedule",
    "schedule_hash",
    "split_users",
]

BLOCK = 4096
HASHED_REQUESTS = 100_000
Generators = Callable[[str], np.random.Generator]


def plan_blocks(workload: Workload, *, size: int = BLOCK, repairs: Repairs | None = None) -> Iterator[PlanBlock]:
    """The whole stream as columns; endless for a closed loop that only time ends. The same stream for any `size`.

    What is set right in a trace is noted in `repairs`. Raises InputError at a line of it that cannot be used.
    """
    rng = cache(partial(named_generator, workload.seed))
    limit = workload.requests
    end_ns = None if workload.duration is None or not workload.open_loop else round(workload.duration * 1e9)
    if workload.sessions is not None:
        size = max(1, size // workload.sessions.turns.bounds[1])
    arrivals = requests = 0
    for arrived in _arrived(workload, rng("arrivals"), size, repairs):
        times = arrived.times_ns if isinstance(arrived, Recorded) else arrived
        count = len(times) if limit is None else min(len(times), limit - requests)
        if end_ns is not None:
            count = min(count, int(np.searchsorted(times, end_ns)))
        if count:
            recorded = arrived.cut(count) if isinstance(arrived, Recorded) else None
            block = _block(workload, rng, (arrivals, requests), times[:count], recorded)
            block = block if limit is None else block.first(limit - requests)
            requests += len(block)
            yield block
        arrivals += len(times)
        if count < len(times) or requests == limit:
            return


def schedule(workload: Workload, *, shard: int = 0, shards: int = 1) -> Iterator[PlannedRequest]:
    """Planned requests of one shard in order of time, lazily; of each session its first turn, which knows the others.

    Raises ValueError unless 0 <= shard < shards.
    """
    if not 0 <= shard < shards:
        raise ValueError(f"shard {shard} of {shards}")
    return _shard(workload, shard, shards)


def phase_at(workload: Workload, request_id: int, elapsed_ns: int) -> Phase:
    """The part of the run that a request sent `elapsed_ns` after the start belongs to."""
    return PHASES[int(_phase_index(workload, request_id, elapsed_ns))]


def endpoint_of(workload: Workload, batch: int) -> str:
    """The endpoint that takes a request of `batch` prompts."""
    if workload.endpoint == AUTO:
        return CHAT if batch == 1 else "completions"
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
        for name, column in block.extra.items():
            digest.update(name.encode() + column[:left].astype("<i8").tobytes())
        left -= len(rows)
        if left <= 0:
            break
    return digest.hexdigest()


def _shard(workload: Workload, shard: int, shards: int) -> Iterator[PlannedRequest]:
    for block in plan_blocks(workload):
        fields = _fields(workload, block, block.of_shard(shard, shards))
        if workload.sessions is None:
            yield from map(PlannedRequest, *fields)
        else:
            yield from _chained(list(zip(*fields, strict=True)))


def _chained(turns: list[Any]) -> Iterator[PlannedRequest]:
    """First turns, each with those that follow it."""
    firsts: list[PlannedRequest] = []
    then: PlannedRequest | None = None
    for fields in reversed(turns):
        plan = PlannedRequest(*(*fields, then))
        then = plan if plan.turn else None
        if then is None:
            firsts.append(plan)
    return reversed(firsts)


def _fields(workload: Workload, block: PlanBlock, mine: Column) -> list[list[Any]]:
    """The fields of the planned requests at the places `mine`, in their order."""
    ids, intended, tokens, output, batch, groups, prefix, phase = (column[mine].tolist() for column in block.columns())
    endpoints = {size: endpoint_of(workload, size) for size in set(batch)}
    blocks = [block.prefix_blocks[place] for place in mine] if block.prefix_blocks else [()] * len(mine)
    fields: list[list[Any]] = [
        ids,
        intended,
        tokens,
        output,
        batch,
        ["prefix" if shared else "none" for shared in block.shared[mine].tolist()],
        [None if group == NO_PREFIX else group for group in groups],
        [PHASES[index] for index in phase],
        [endpoints[size] for size in batch],
        prefix,
        blocks,
        [block.prefix_block_tokens if some else 0 for some in blocks],
    ]
    if block.extra:
        fields += [_named(workload, name, block, mine) for name in EXTRA_COLUMNS]
    return fields


def _named(workload: Workload, name: str, block: PlanBlock, mine: Column) -> list[Any]:
    """An extra column's values, by what their indexes stand for; nulls (or zeros) where the block has none."""
    column = block.extra.get(name)
    if column is None:
        return [EXTRA_COLUMNS[name]] * len(mine)
    values: list[Any] = column[mine].tolist()
    if name not in MIXES:
        return values
    keys = [entry.key for entry in getattr(workload, MIXES[name])]
    return [keys[index] for index in values]


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
    workload: Workload, rng: Generators, first: tuple[int, int], times: Column, recorded: Recorded | None
) -> PlanBlock:
    """The requests of arrivals at `times`; `first` numbers the first arrival, and its request."""
    count = len(times)
    tokens = _lengths(workload, "input_tokens", rng("input"), count, recorded.input_tokens if recorded else None)
    output = _lengths(workload, "output_tokens", rng("output"), count, recorded.output_tokens if recorded else None)
    groups = _prefix_groups(workload, rng("cache"), count)
    shared = np.where(groups == NO_PREFIX, 0, np.floor(tokens * workload.cache.prefix_fraction)).astype(np.int64)
    blocks: tuple[tuple[int, ...], ...] = ()
    if recorded and isinstance(workload.input_tokens, TraceLength):
        blocks = recorded.blocks
        known = np.fromiter(map(bool, blocks), dtype=bool, count=count)
        groups, shared = np.where(known, NO_PREFIX, groups), np.where(known, recorded.shared_tokens, shared)
    ids = np.arange(first[1], first[1] + count)
    block = PlanBlock(
        request_id=ids,
        intended_ns=times,
        input_tokens=tokens,
        output_tokens=output,
        batch=draw_batches(workload.batch, tokens, rng("batch")),
        prefix_group=groups,
        prefix_tokens=shared,
        phase=_phase_index(workload, ids, times),
        prefix_blocks=blocks,
        prefix_block_tokens=recorded.block_tokens if recorded else 0,
        extra=_mixes(workload, rng, count),
    )
    return block if workload.sessions is None else _with_turns(workload, workload.sessions, rng, first[0], block)


def _mixes(workload: Workload, rng: Generators, count: int) -> dict[str, Column]:
    drawn = {}
    for name, key in MIXES.items():
        entries = getattr(workload, key)
        if entries is not None:
            drawn[name] = draw_index([entry.weight for entry in entries], rng(key), count)
    return drawn


def _with_turns(workload: Workload, spec: Sessions, rng: Generators, first: int, block: PlanBlock) -> PlanBlock:
    """The block of first turns with every later turn after its session's first."""
    lengths = (spec.input_tokens or workload.input_tokens, workload.output_tokens)
    turns = draw_turns(spec, lengths, (block.input_tokens, block.output_tokens), rng)
    opening = turns.turn == 0
    ids = block.request_id[0] + np.arange(len(turns))
    waited = np.cumsum(turns.pause_ns)
    times = block.intended_ns[turns.arrival] + waited - waited[opening][turns.arrival]
    return PlanBlock(
        request_id=ids,
        intended_ns=times,
        input_tokens=turns.input_tokens,
        output_tokens=turns.output_tokens,
        batch=block.batch[turns.arrival],
        prefix_group=np.where(opening, block.prefix_group[turns.arrival], NO_PREFIX),
        prefix_tokens=np.where(opening, block.prefix_tokens[turns.arrival], turns.input_tokens - turns.added_tokens),
        phase=_phase_index(workload, ids, times),
        extra={name: column[turns.arrival] for name, column in block.extra.items()}
        | {"session": first + turns.arrival, "turn": turns.turn}
        | {"added_tokens": turns.added_tokens, "pause_ns": turns.pause_ns},
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
