"""The messages between master and workers, all carried by Locust, and the users that Locust wants to have."""

from __future__ import annotations

# master to worker
ASSIGN = "cliffwatch_assign"  # Assignment: answer with READY
GO = "cliffwatch_go"  # {"t0_unix_ns"}: the run's zero on the wall clock
STOP = "cliffwatch_stop"  # {"drain_s"}: issue nothing more, then close

# worker to master
READY = "cliffwatch_ready"  # {"run_id", "shard", "host", "pid", "refusal"}: refusal is None, or why it cannot take part
CLOSED = "cliffwatch_closed"  # WorkerReport: the shard is complete

# in Locust's own periodic report: WorkerReport
REPORT_KEY = "cliffwatch"
