"""A worker's watch over itself: what it sees of a loop that is held up, of collections, of what it uses."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import gevent
import pytest

from loadgen.health import PROBE_NS, Monitor, Pauses
from loadgen.procfs import Process

MS = 1_000_000


def test_probes_that_fell_due_in_a_standstill_count_each_with_its_own_lateness() -> None:
    """Woken 110 ms late: probes of 110, 90, 70, 50, 30 and 10 ms; the next is due 10 ms from now."""
    monitor = Monitor(lambda: 0)
    assert monitor._late(1000 * MS, 1110 * MS) == 1120 * MS
    monitor._first = monitor._count()
    monitor._recent.append(monitor._first)
    health = monitor.health()
    assert health is not None
    assert health.loop_probes == 6
    assert health.loop_lag_max_s == pytest.approx(0.110)
    assert health.loop_lag_p50_s == pytest.approx(0.060, rel=0.02)  # between 50 and 70 ms


def test_one_probe_on_time() -> None:
    monitor = Monitor(lambda: 0)
    assert monitor._late(1000 * MS, 1000 * MS + 50_000) == 1000 * MS + PROBE_NS


def test_a_blocked_loop_is_seen() -> None:
    monitor = Monitor(lambda: 3)
    monitor.start()
    gevent.sleep(0.1)
    time.sleep(0.3)  # conftest keeps it the blocking one
    gevent.sleep(0.1)
    gc.collect()
    monitor.stop()
    monitor.stop()
    health = monitor.health()
    assert health is not None
    assert health.loop_lag_max_s is not None
    assert health.loop_lag_max_s > 0.25
    assert health.loop_probes >= 15
    assert health.gc_pauses >= 1
    assert health.ports_used == 3
    assert health.fds_used is None or health.fds_used > 2
    assert gc.callbacks == [one for one in gc.callbacks if not isinstance(one, Pauses)]


def test_unknown_is_none(tmp_path: Path) -> None:
    monitor = Monitor(lambda: 0, process=Process(tmp_path))
    assert monitor.health() is None
    monitor.start()
    monitor.stop()
    health = monitor.health()
    assert health is not None
    unknown = (health.run_queue_share, health.host_steal_share, health.host_cpu_share, health.fds_used)
    assert (*unknown, health.rss_bytes, health.swap_bytes, health.port_range, health.loop_cpu_share) == (None,) * 8


def test_pauses_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1000, 1300, 2000, 2100])
    monkeypatch.setattr("loadgen.health.monotonic_ns", lambda: next(clock))
    pauses = Pauses()
    for phase in ("start", "stop", "start", "stop"):
        pauses(phase, {})
    assert (pauses.count, pauses.total_ns, pauses.longest_ns) == (2, 400, 300)
