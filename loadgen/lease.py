"""A worker's leave to issue requests, and its sense of how long it stood still.

The lease ends `LEASE_S` after this worker *sent* the last beat that the master is known to have heard. The master hands
a worker's part over no sooner than `HANDOVER_S` after it heard the last beat, which is later than that beat was sent.
So whoever was cut off, or stopped with SIGSTOP, has ceased to issue before anybody else begins, with no clock compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import gevent

BEAT_S = 2.0
LEASE_S = 10.0
HANDOVER_S = 15.0  # over LEASE_S by more than a worker needs from the look at its lease to the request's first byte
MASTER_SILENCE_S = 30.0  # of a worker that is awake: after that it closes what it has, and ends
PAUSE_S = 1.0  # a loop that stood still for longer is told of
TICK_S = 0.1
FOREVER_NS = 1 << 62


@dataclass(slots=True)
class Lease:
    """Until when requests may be issued, on the monotonic clock. A process that is its own master has it for good."""

    until_ns: int = FOREVER_NS

    def renew(self, sent_ns: int) -> None:
        """The master has heard the beat sent at `sent_ns`. Answers that come late or twice take nothing away."""
        self.until_ns = max(self.until_ns, sent_ns + round(LEASE_S * 1e9))


@dataclass(slots=True)
class Pulse:
    """Looks at the clock all the time, to see when this process did not run.

    Attributes:
        silence_s: time awake since `heard`: what a process sleeps through says nothing about the others.
        longest: the longest stretch in which the loop did not turn, in seconds, and when it began (Unix, ns).
    """

    silence_s: float = 0.0
    longest: tuple[float, int] = (0.0, 0)
    clock: Callable[[], float] = time.monotonic
    _last_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_s = self.clock()

    def heard(self) -> None:
        self.silence_s = 0.0

    def tick(self) -> float:
        """Note the time since the last tick, and return how much of it was spent awake."""
        now_s = self.clock()
        passed_s, self._last_s = now_s - self._last_s, now_s
        awake_s = min(passed_s, 2 * TICK_S)
        self.silence_s += awake_s
        still_s = passed_s - TICK_S
        if still_s > self.longest[0]:
            self.longest = still_s, time.time_ns() - round(passed_s * 1e9)
        return awake_s

    def forget(self) -> None:
        """Begin anew: another run."""
        self.longest = 0.0, 0

    def run(self, on_tick: Callable[[float], None]) -> None:
        """Tick for ever, telling `on_tick` the time awake."""
        while True:
            gevent.sleep(TICK_S)
            on_tick(self.tick())
