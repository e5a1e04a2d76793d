"""The messages between master and workers; Locust carries them."""

from __future__ import annotations

from typing import Any

import msgspec

# master to worker
ASSIGN = "cliffwatch_assign"  # Assignment: answer with READY
GO = "cliffwatch_go"  # {"t0_unix_ns"}: the run's zero on the wall clock
STOP = "cliffwatch_stop"  # {"now"}: issue no more, let what is in flight end for the drain time (not if now), close

# worker to master
READY = "cliffwatch_ready"  # {"run_id", "shard", "host", "pid", "refusal"}: refusal is None, or why it cannot take part
CLOSED = "cliffwatch_closed"  # WorkerReport: the shard is complete

# in Locust's own periodic report: WorkerReport
REPORT_KEY = "cliffwatch"


def plain(message: msgspec.Struct) -> dict[str, Any]:
    """A message in plain types, as Locust's msgpack carries them."""
    data: dict[str, Any] = msgspec.to_builtins(message)
    return data
