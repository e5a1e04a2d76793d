"""What the requests of a schedule are: lengths, batches, phases, mixes, sessions, and each worker's part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cliffwatch.workload.mix_parts import Weighted
from cliffwatch.workload.plan import MIXES, PHASES, Column, PlanBlock
from cliffwatch.workload.preview.chance import Expected, expected
from cliffwatch.workload.schedule import endpoint_of, split_users
from cliffwatch.workload.spec import Workload


@dataclass(frozen=True)
class Lengths:
    """Tokens a prompt (input) or an answer (output), over `n` requests."""

    n: int
    min: int
    p50: float
    p95: float
    max: int
    mean: float


@dataclass(frozen=True)
class GridRow:
    """Requests whose input length is in [low, high), by batch size."""

    low: int
    high: int
    by_batch: dict[int, int]


@dataclass(frozen=True)
class MixPart:
    """One entry of a mix: the `n` requests that the schedule gives it, and how many its weight lets expect.

    With sessions, whose turns share one entry, the expectation has no bounds.
    """

    key: str
    n: int
    expected: Expected


@dataclass(frozen=True)
class SessionsPlan:
    """`n` sessions: requests in each, tokens that a turn after the first adds, and the mean pause before it; null where
    there is no such turn."""

    n: int
    turns: Lengths
    added_tokens: Lengths | None
    mean_pause_s: float | None


@dataclass(frozen=True)
class ShardPlan:
    """One worker's part. `users` in a closed loop only."""

    shard: int
    requests: int
    input_tokens: int
    users: int | None


def lengths_of(tokens: Column) -> Lengths:
    p50, p95 = np.quantile(tokens, (0.5, 0.95)).tolist()
    return Lengths(len(tokens), int(tokens.min()), p50, p95, int(tokens.max()), float(tokens.mean()))


def counts_of(values: Column) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def endpoints_of(workload: Workload, by_batch: dict[int, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for size, count in by_batch.items():
        endpoint = endpoint_of(workload, size)
        totals[endpoint] = totals.get(endpoint, 0) + count
    return totals


def phases_of(workload: Workload, phase: Column) -> dict[str, int] | None:
    if not workload.open_loop and workload.warmup.duration:
        return None
    return {str(name): int((phase == index).sum()) for index, name in enumerate(PHASES)}


def mixes_of(workload: Workload, plan: PlanBlock) -> dict[str, tuple[MixPart, ...]]:
    """Requests by model, tenant and priority, where the workload has such a mix."""
    return {
        name: _mix(getattr(workload, field), plan.extra[name], bounded=workload.sessions is None)
        for name, field in MIXES.items()
        if name in plan.extra
    }


def _mix(entries: Sequence[Weighted], drawn: Column, *, bounded: bool) -> tuple[MixPart, ...]:
    counts, total = counts_of(drawn), sum(entry.weight for entry in entries)
    return tuple(
        MixPart(str(entry.key), counts.get(place, 0), expected(len(drawn), entry.weight / total, bounded=bounded))
        for place, entry in enumerate(entries)
    )


def sessions_of(plan: PlanBlock) -> SessionsPlan:
    later = plan.extra["turn"] > 0
    turns = np.unique(plan.extra["session"], return_counts=True)[1]
    pauses_ns = plan.extra["pause_ns"][later]
    return SessionsPlan(
        n=len(turns),
        turns=lengths_of(turns),
        added_tokens=lengths_of(plan.extra["added_tokens"][later]) if later.any() else None,
        mean_pause_s=float(pauses_ns.mean()) / 1e9 if later.any() else None,
    )


def grid_of(plan: PlanBlock) -> tuple[GridRow, ...]:
    """Doublings of the input length by batch size."""
    doubling = np.frexp(plan.input_tokens.astype(np.float64))[1] - 1
    present = range(int(doubling.min()), int(doubling.max()) + 1)
    return tuple(GridRow(1 << row, 2 << row, counts_of(plan.batch[doubling == row])) for row in present)


def shard_of(workload: Workload, plan: PlanBlock, shard: int, shards: int) -> ShardPlan:
    mine = plan.of_shard(shard, shards)
    return ShardPlan(
        shard=shard,
        requests=len(mine),
        input_tokens=int((plan.input_tokens[mine] * plan.batch[mine]).sum()),
        users=None if workload.users is None else split_users(workload.users, shard, shards),
    )
