"""A worker's metrics: its own rows, exact and at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cliffwatch.records.counted import MergedCounts
from loadgen.metrics.requests import build_info, of_flow, of_requests
from loadgen.shard import Shard


def worker_text(shards: Sequence[Shard]) -> Iterator[str]:
    """Everything that a worker exposes of the parts that it had of the newest run, under the number of the first."""
    yield from build_info()
    counted = [(shard, shard.tally.counts) for shard in shards if shard.tally.counts is not None]
    if not counted:
        return
    first, counts = counted[0]
    own = {"run": first.run_id, "worker": str(first.number)}
    merged = MergedCounts(counts.edges)
    for shard, counts in counted:
        merged.take(shard.number, counts.counted())
    yield from of_flow(sum(s.tally.issued_so_far for s in shards), sum(s.tally.in_flight for s in shards), own)
    yield from of_requests(merged.counted(), merged.edges, own)
