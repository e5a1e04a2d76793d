"""What a workload will send, as numbers: computed from the schedule itself, bounded, without sending anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import SteadyArrivals
from cliffwatch.workload.plan import MIXES, PHASES, Column, PlanBlock, joined
from cliffwatch.workload.schedule import endpoint_of, plan_blocks, schedule_hash, split_users
from cliffwatch.workload.spec import Workload
from cliffwatch.workload.traces.rows import Repair, Repairs

MAX_PREVIEWED = 1_000_000
ENDLESS_PREVIEWED = 10_000  # of a closed loop that only time ends
TIME_BINS = 60
MIN_BINS = 20
ARRIVALS_PER_BIN = 5


@dataclass(frozen=True)
class Gaps:
    """Times between arrivals: `cv` is their deviation over their mean; `dispersion` the variance over the mean of the
    arrivals in `bins` windows of `bin_s`. Both are 1 for Poisson arrivals and 0 for constant ones, and larger where the
    rate changes; null if too few."""

    n: int
    mean_s: float | None
    cv: float | None
    dispersion: float | None
    bins: int
    bin_s: float


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


@dataclass(frozen=True)
class Preview:
    """Statistics of a schedule. Every figure is over the `n` first requests; `complete` says whether these are all.

    Attributes:
        expected_requests: of the whole load; null where the server's pace decides.
        duration_s: length of the load as far as previewed; null where the server's pace decides.
        rate_asked, rate_achieved: requests a second on average over `duration_s`, the second from the planned
            arrivals; null in a closed loop.
        by_phase: null where the clock decides it while running (a closed loop with a warm-up by time).
        shared_input_tokens: those of `total_input_tokens` that are a shared prefix, or were said before in a session.
        mixes: requests by model, tenant and priority, where the workload has such a mix.
        sessions: null where every arrival is one request; where it begins a session, rates, gaps and arrivals over time
            are those of sessions, and prompts hold answers as long as asked.
        arrivals_over_time: arrivals in equal parts of `duration_s`.
        repairs: what was set right in a trace, as far as it was read.
    """

    name: str
    description: str
    seed: int
    schedule_hash: str
    arrivals: str
    users: int | None
    n: int
    complete: bool
    expected_requests: float | None
    duration_s: float | None
    rate_asked: float | None
    rate_achieved: float | None
    gaps: Gaps | None
    input_tokens: Lengths
    output_tokens: Lengths
    prompts: int
    total_input_tokens: int
    total_output_tokens: int
    by_batch: dict[int, int]
    by_endpoint: dict[str, int]
    by_phase: dict[str, int] | None
    prefix_requests: int
    prefix_share: float
    shared_input_tokens: int
    mixes: dict[str, dict[str, int]]
    sessions: SessionsPlan | None
    grid: tuple[GridRow, ...]
    arrivals_over_time: tuple[int, ...]
    shards: tuple[ShardPlan, ...]
    repairs: tuple[Repair, ...]


def preview(workload: Workload, *, shards: int = 1, limit: int = MAX_PREVIEWED) -> Preview:
    """Statistics of the first `limit` requests; a few tenths of a second for a million.

    Raises:
        InputError: the load ends before its first request.
    """
    if workload.requests is None and not workload.open_loop:
        limit = min(limit, ENDLESS_PREVIEWED)
    repairs = Repairs()
    plan, complete = _columns(workload, limit, repairs)
    n = len(plan)
    starts = plan.intended_ns if workload.sessions is None else plan.intended_ns[plan.extra["turn"] == 0]
    duration = _duration_s(workload, plan, complete)
    asked = _mean_rate(workload, duration)
    gaps = _gaps(starts, asked or len(starts) / duration, duration) if workload.open_loop and duration else None
    prefixed = int(plan.shared.sum())
    return Preview(
        name=workload.name,
        description=workload.description,
        seed=workload.seed,
        schedule_hash=schedule_hash(workload),
        arrivals=workload.arrivals.kind,
        users=workload.users,
        n=n,
        complete=complete,
        expected_requests=n if complete else _expected(workload),
        duration_s=duration,
        rate_asked=asked,
        rate_achieved=_planned_rate(workload, len(starts), duration, gaps),
        gaps=gaps,
        input_tokens=_lengths(plan.input_tokens),
        output_tokens=_lengths(plan.output_tokens),
        prompts=int(plan.batch.sum()),
        total_input_tokens=int((plan.input_tokens * plan.batch).sum()),
        total_output_tokens=int((plan.output_tokens * plan.batch).sum()),
        by_batch=_counts(plan.batch),
        by_endpoint=_by_endpoint(workload, _counts(plan.batch)),
        by_phase=_by_phase(workload, plan.phase),
        prefix_requests=prefixed,
        prefix_share=prefixed / n,
        shared_input_tokens=int((plan.prefix_tokens * plan.batch).sum()),
        mixes=_mixes(workload, plan),
        sessions=None if workload.sessions is None else _sessions(plan),
        grid=_grid(plan),
        arrivals_over_time=_over_time(starts, duration) if workload.open_loop and duration else (),
        shards=tuple(_shard(workload, plan, shard, shards) for shard in range(shards)),
        repairs=tuple(repairs),
    )


def _columns(workload: Workload, limit: int, repairs: Repairs) -> tuple[PlanBlock, bool]:
    """The first `limit` requests as one block, and whether these are all."""
    blocks: list[PlanBlock] = []
    total = 0
    for block in plan_blocks(workload, size=1 << 16, repairs=repairs):
        blocks.append(block)
        total += len(block)
        if total > limit:
            break
    if not total:
        raise InputError(
            "ends before its first request", field="duration", allowed="a longer duration or a higher rate"
        )
    return joined(blocks, limit), total <= limit


def _duration_s(workload: Workload, plan: PlanBlock, complete: bool) -> float | None:
    if not workload.open_loop:
        return workload.duration
    if workload.duration is not None and complete and len(plan) != workload.requests:
        return workload.duration
    return float(plan.intended_ns.max()) / 1e9


def _expected(workload: Workload) -> float | None:
    by_time = workload.expected_requests(workload.duration) if workload.duration else None
    return min((count for count in (workload.requests, by_time) if count is not None), default=None)


def _mean_rate(workload: Workload, duration_s: float | None) -> float | None:
    expected = workload.expected_arrivals(duration_s) if duration_s else None
    return expected / duration_s if expected and duration_s else None


def _planned_rate(workload: Workload, n: int, duration_s: float | None, gaps: Gaps | None) -> float | None:
    if not isinstance(workload.arrivals, SteadyArrivals):
        return n / duration_s if workload.open_loop and duration_s else None
    return 1 / gaps.mean_s if gaps and gaps.mean_s else None


def _gaps(intended_ns: Column, rate: float, duration_s: float) -> Gaps:
    gaps = np.diff(intended_ns)
    bin_s = max(0.1, ARRIVALS_PER_BIN / rate)
    bins = int(duration_s / bin_s)
    counts = np.bincount((intended_ns // round(bin_s * 1e9)).astype(np.int64), minlength=bins)[:bins]
    mean = float(gaps.mean()) if gaps.size else 0.0
    return Gaps(
        n=int(gaps.size),
        mean_s=mean / 1e9 or None,
        cv=float(gaps.std(ddof=1)) / mean if gaps.size > 1 and mean else None,
        dispersion=float(counts.var(ddof=1) / counts.mean()) if bins >= MIN_BINS and counts.any() else None,
        bins=bins,
        bin_s=bin_s,
    )


def _lengths(tokens: Column) -> Lengths:
    p50, p95 = np.quantile(tokens, (0.5, 0.95)).tolist()
    return Lengths(len(tokens), int(tokens.min()), p50, p95, int(tokens.max()), float(tokens.mean()))


def _counts(values: Column) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def _by_endpoint(workload: Workload, by_batch: dict[int, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for size, count in by_batch.items():
        endpoint = endpoint_of(workload, size)
        totals[endpoint] = totals.get(endpoint, 0) + count
    return totals


def _by_phase(workload: Workload, phase: Column) -> dict[str, int] | None:
    if not workload.open_loop and workload.warmup.duration:
        return None
    return {str(name): int((phase == index).sum()) for index, name in enumerate(PHASES)}


def _mixes(workload: Workload, plan: PlanBlock) -> dict[str, dict[str, int]]:
    found = {}
    for name, field in MIXES.items():
        if name in plan.extra:
            counts = _counts(plan.extra[name])
            found[name] = {str(entry.key): counts.get(i, 0) for i, entry in enumerate(getattr(workload, field))}
    return found


def _sessions(plan: PlanBlock) -> SessionsPlan:
    later = plan.extra["turn"] > 0
    turns = np.unique(plan.extra["session"], return_counts=True)[1]
    pauses_ns = plan.extra["pause_ns"][later]
    return SessionsPlan(
        n=len(turns),
        turns=_lengths(turns),
        added_tokens=_lengths(plan.extra["added_tokens"][later]) if later.any() else None,
        mean_pause_s=float(pauses_ns.mean()) / 1e9 if later.any() else None,
    )


def _grid(plan: PlanBlock) -> tuple[GridRow, ...]:
    """Doublings of the input length by batch size."""
    doubling = np.frexp(plan.input_tokens.astype(np.float64))[1] - 1
    present = range(int(doubling.min()), int(doubling.max()) + 1)
    return tuple(GridRow(1 << row, 2 << row, _counts(plan.batch[doubling == row])) for row in present)


def _over_time(intended_ns: Column, duration_s: float) -> tuple[int, ...]:
    part = np.minimum((intended_ns / (duration_s * 1e9) * TIME_BINS).astype(np.int64), TIME_BINS - 1)
    return tuple(np.bincount(part, minlength=TIME_BINS).tolist())


def _shard(workload: Workload, plan: PlanBlock, shard: int, shards: int) -> ShardPlan:
    mine = plan.of_shard(shard, shards)
    return ShardPlan(
        shard=shard,
        requests=len(mine),
        input_tokens=int((plan.input_tokens[mine] * plan.batch[mine]).sum()),
        users=None if workload.users is None else split_users(workload.users, shard, shards),
    )
