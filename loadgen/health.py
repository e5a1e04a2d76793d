"""A worker watches itself while it measures: is its event loop on time, is there CPU, are there ports and files left?

A probe is due every 20 ms on the kernel's clock, and costs one wake-up; /proc is read once a second. Together that is
about 0.3 % of a core.
"""

from __future__ import annotations

import gc
import resource
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns, process_time, thread_time
from typing import Any, TypeVar

import gevent

from cliffwatch.records.health import Health
from cliffwatch.stats.sketch import Sketch
from loadgen.procfs import HostTicks, Process
from loadgen.timer import NS_PER_S, make_timer

_Number = TypeVar("_Number", int, float)

PROBE_NS = 20_000_000
READ_EVERY = 50  # probes
BUSY_WINDOW = 5  # seconds that a worker must be busy to be called so
_MOST_MISSED = 50_000  # probes counted one by one after a standstill (1,000 s)


@dataclass(slots=True)
class _Reading:
    """Counters of the process at one instant."""

    at_ns: int
    process_s: float
    loop_s: float
    run_queue_ns: int | None
    host: HostTicks | None


class Pauses:
    """Collections of the garbage collector, as `gc.callbacks` tells them."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.longest_ns = 0
        self._since_ns = 0

    def __call__(self, phase: str, _info: dict[str, Any]) -> None:
        now_ns = monotonic_ns()
        if phase == "start":
            self._since_ns = now_ns
        elif self._since_ns:
            took_ns = now_ns - self._since_ns
            self.count += 1
            self.total_ns += took_ns
            self.longest_ns = max(self.longest_ns, took_ns)


class Monitor:
    """Watches this process from `start` to `stop`. Must be used from the event loop's thread."""

    def __init__(
        self, connections: Callable[[], int], *, fd_limit_was: int | None = None, process: Process | None = None
    ) -> None:
        """`connections` counts those open to the target."""
        self._connections = connections
        self._fd_limit_was = fd_limit_was
        self._process = process or Process()
        self._pauses = Pauses()
        self._lag = Sketch()
        self._lag_max_s: float | None = None
        self._recent: deque[_Reading] = deque(maxlen=BUSY_WINDOW + 1)
        self._first: _Reading | None = None
        self._peak_1s: float | None = None
        self._peak_loop: float | None = None
        self._fds: int | None = None
        self._ports = 0
        self._memory: tuple[int | None, int | None] = (None, None)
        self._watch: Any = None

    def start(self) -> None:
        self._first = self._count()
        self._recent.append(self._first)
        gc.callbacks.append(self._pauses)
        self._watch = gevent.spawn(self._probe)

    def stop(self) -> None:
        """What was measured stays. May be called again."""
        if self._watch is not None:
            self._watch.kill()
            self._watch = None
            gc.callbacks.remove(self._pauses)
            self._read()

    def health(self) -> Health | None:
        """What was seen so far; None before `start`."""
        if self._first is None:
            return None
        first, last = self._first, self._recent[-1]
        watched_s = (last.at_ns - first.at_ns) / NS_PER_S
        busy, steal = _host_shares(first.host, last.host)
        rss, swap = self._memory
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return Health(
            measured_s=watched_s,
            loop_probes=self._lag.n,
            loop_lag_p50_s=self._lag.percentile(0.5).value,
            loop_lag_p99_s=self._lag.percentile(0.99).value,
            loop_lag_max_s=self._lag_max_s,
            gc_pauses=self._pauses.count,
            gc_total_s=self._pauses.total_ns / NS_PER_S,
            gc_max_s=self._pauses.longest_ns / NS_PER_S if self._pauses.count else None,
            cpu_share=_share(last.process_s - first.process_s, watched_s),
            cpu_peak_share=self._peak_1s,
            loop_cpu_share=self._peak_loop,
            run_queue_share=_run_queue_share(first, last),
            host_cpu_share=busy,
            host_steal_share=steal,
            fds_used=self._fds,
            fd_limit=None if soft == resource.RLIM_INFINITY else soft,
            fd_limit_was=self._fd_limit_was,
            ports_used=self._ports,
            port_range=self._process.port_range(),
            rss_bytes=rss,
            swap_bytes=swap,
        )

    def _probe(self) -> None:
        timer = make_timer()
        due_ns, probes = monotonic_ns() + PROBE_NS, 0
        try:
            while True:
                timer.wait_until(due_ns)
                due_ns = self._late(due_ns, monotonic_ns())
                probes += 1
                if probes % READ_EVERY == 0:
                    self._read()
        finally:
            timer.close()

    def _late(self, due_ns: int, now_ns: int) -> int:
        """Count the probe, and those that fell due while the loop stood still; the next one's time."""
        lag_s = (now_ns - due_ns) / NS_PER_S
        self._lag_max_s = lag_s if self._lag_max_s is None else max(self._lag_max_s, lag_s)
        missed = 1 + (now_ns - due_ns) // PROBE_NS
        for number in range(min(missed, _MOST_MISSED)):
            self._lag.add((now_ns - due_ns - number * PROBE_NS) / NS_PER_S)
        return due_ns + missed * PROBE_NS

    def _count(self) -> _Reading:
        process = self._process
        return _Reading(monotonic_ns(), process_time(), thread_time(), process.run_queue_ns(), process.host_ticks())

    def _read(self) -> None:
        """Once a second: the counters, and what can only be seen at the moment."""
        last, now = self._recent[-1], self._count()
        second_s = (now.at_ns - last.at_ns) / NS_PER_S
        if second_s >= 0.5:  # the last piece of a run may be too short to say anything
            self._peak_1s = _highest(self._peak_1s, _share(now.process_s - last.process_s, second_s))
        self._recent.append(now)
        oldest = self._recent[0]
        if len(self._recent) > BUSY_WINDOW:
            self._peak_loop = _highest(
                self._peak_loop, _share(now.loop_s - oldest.loop_s, (now.at_ns - oldest.at_ns) / NS_PER_S)
            )
        self._fds = _highest(self._fds, self._process.fds())
        self._ports = max(self._ports, self._connections())
        rss, swap = self._process.memory_bytes()
        self._memory = _highest(self._memory[0], rss), _highest(self._memory[1], swap)


def _share(part_s: float, whole_s: float) -> float | None:
    return part_s / whole_s if whole_s > 0 else None


def _run_queue_share(first: _Reading, last: _Reading) -> float | None:
    if first.run_queue_ns is None or last.run_queue_ns is None or last.at_ns == first.at_ns:
        return None
    return (last.run_queue_ns - first.run_queue_ns) / (last.at_ns - first.at_ns)


def _host_shares(first: HostTicks | None, last: HostTicks | None) -> tuple[float | None, float | None]:
    if first is None or last is None or last.total <= first.total:
        return None, None
    ticks = last.total - first.total
    return (last.busy - first.busy) / ticks, (last.steal - first.steal) / ticks


def _highest(known: _Number | None, new: _Number | None) -> _Number | None:
    return new if known is None else known if new is None else max(known, new)
