"""A worker's metrics: its own rows, exact and at once."""

from __future__ import annotations

from collections.abc import Iterator

from loadgen.metrics.requests import build_info, of_flow, of_requests
from loadgen.shard import Shard


def worker_text(shard: Shard | None) -> Iterator[str]:
    """Everything that a worker exposes of the newest shard that it had."""
    yield from build_info()
    if shard is None or shard.tally.counts is None:
        return
    own = {"run": shard.run_id, "worker": str(shard.number)}
    yield from of_flow(shard.tally.issued_so_far, shard.tally.in_flight, own)
    yield from of_requests(shard.tally.counts.counted(), shard.tally.counts.edges, own)
