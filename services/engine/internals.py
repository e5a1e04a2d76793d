"""What no face's metrics tell of the engine, in names of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from services.engine.scheduler import Scheduler


def exposed(scheduler: Scheduler) -> bytes:
    """Prometheus text; the share of unused slots is absent while no slot is reserved."""
    registry = CollectorRegistry()
    figures = (
        ("kv_unused_ratio", "Of the reserved cache, the share that holds no token.", scheduler.unused_share),
        ("kv_used_blocks", "Blocks of the cache that sequences hold.", scheduler.kv.used_blocks),
        ("kv_idle_blocks", "Cached blocks that nobody holds.", scheduler.kv.idle_blocks),
        (
            "kv_evicted_blocks",
            "Cached blocks forgotten for want of room, so far.",
            scheduler.kv.evicted_blocks,
        ),
    )
    for name, means, value in figures:
        if value is not None:
            Gauge(f"cliffwatch_engine_{name}", means, registry=registry).set(value)
    return generate_latest(registry)
