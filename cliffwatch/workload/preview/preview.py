"""What a workload will send, as numbers: computed from the schedule itself, bounded, without sending anything."""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.errors import InputError
from cliffwatch.workload.plan import PlanBlock, joined
from cliffwatch.workload.preview.clients import CancellationsPlan, RetriesPlan, cancellations_of, retries_of
from cliffwatch.workload.preview.pace import Gaps, pace_of
from cliffwatch.workload.preview.requests import (
    GridRow,
    Lengths,
    MixPart,
    SessionsPlan,
    ShardPlan,
    counts_of,
    endpoints_of,
    grid_of,
    lengths_of,
    mixes_of,
    phases_of,
    sessions_of,
    shard_of,
)
from cliffwatch.workload.schedule import plan_blocks, schedule_hash
from cliffwatch.workload.spec import Workload
from cliffwatch.workload.traces.rows import Repair, Repairs

MAX_PREVIEWED = 1_000_000
ENDLESS_PREVIEWED = 10_000  # of a closed loop that only time ends


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
        mixes: requests by model, tenant and priority, where the workload has such a mix, beside what to expect of it.
        retries, cancellations: what clients do of their own accord; null where they do not.
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
    mixes: dict[str, tuple[MixPart, ...]]
    retries: RetriesPlan | None
    cancellations: CancellationsPlan | None
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
    repairs = Repairs()
    plan, complete = _columns(workload, limit, repairs)
    n, pace = len(plan), pace_of(workload, plan, complete=complete)
    prefixed, by_batch = int(plan.shared.sum()), counts_of(plan.batch)
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
        duration_s=pace.duration_s,
        rate_asked=pace.rate_asked,
        rate_achieved=pace.rate_achieved,
        gaps=pace.gaps,
        input_tokens=lengths_of(plan.input_tokens),
        output_tokens=lengths_of(plan.output_tokens),
        prompts=int(plan.batch.sum()),
        total_input_tokens=int((plan.input_tokens * plan.batch).sum()),
        total_output_tokens=int((plan.output_tokens * plan.batch).sum()),
        by_batch=by_batch,
        by_endpoint=endpoints_of(workload, by_batch),
        by_phase=phases_of(workload, plan.phase),
        prefix_requests=prefixed,
        prefix_share=prefixed / n,
        shared_input_tokens=int((plan.prefix_tokens * plan.batch).sum()),
        mixes=mixes_of(workload, plan),
        retries=retries_of(workload, plan),
        cancellations=cancellations_of(workload, plan),
        sessions=None if workload.sessions is None else sessions_of(plan),
        grid=grid_of(plan),
        arrivals_over_time=pace.over_time,
        shards=tuple(shard_of(workload, plan, shard, shards) for shard in range(shards)),
        repairs=tuple(repairs),
    )


def _columns(workload: Workload, limit: int, repairs: Repairs) -> tuple[PlanBlock, bool]:
    """The first `limit` requests as one block, fewer where only time ends a closed loop, and whether these are all."""
    if workload.requests is None and not workload.open_loop:
        limit = min(limit, ENDLESS_PREVIEWED)
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


def _expected(workload: Workload) -> float | None:
    by_time = workload.expected_requests(workload.duration) if workload.duration else None
    return min((count for count in (workload.requests, by_time) if count is not None), default=None)
