"""Waiting for an absolute instant of the monotonic clock, to tens of microseconds, without spinning.

The event loop's own timers are rounded up to whole milliseconds by epoll and start from a cached time. A Linux timerfd
is neither: the kernel wakes the loop at the nanosecond that was asked for.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from contextlib import suppress
from time import monotonic_ns
from typing import Any, Protocol

import gevent

NS_PER_S = 1_000_000_000
_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1
_TFD_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_PR_SET_TIMERSLACK = 29
_READ_EVENT = 1
# Between looks at the sockets of whoever never waits. gevent itself looks at none before all greenlets that only yield
# have run, for up to 5 ms: answers that came meanwhile would be stamped so much too late.
_LOOK_NS = 1_000_000


class Timer(Protocol):
    """Sleeps until an instant; woken early only by an exception thrown into the greenlet."""

    def wait_until(self, due_ns: int) -> None: ...

    def give_way(self) -> None:
        """Let other greenlets run, those included whose sockets can be read by now."""

    def close(self) -> None: ...


class _KernelTimer:
    def __init__(self, libc: Any) -> None:
        self._libc = libc
        libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
        self._fd = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._hub = gevent.get_hub()
        self._watcher = self._hub.loop.io(self._fd, _READ_EVENT)
        self._looked_ns = 0

    def wait_until(self, due_ns: int) -> None:
        while monotonic_ns() < due_ns:
            self._wait(due_ns)

    def give_way(self) -> None:
        now_ns = monotonic_ns()
        if now_ns - self._looked_ns < _LOOK_NS:
            gevent.sleep(0)
        else:
            self._looked_ns = now_ns
            self._wait(1)  # long past: the loop learns it as it does of sockets, by asking the kernel

    def _wait(self, due_ns: int) -> None:
        when = struct.pack("qqqq", 0, 0, *divmod(due_ns, NS_PER_S))
        self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, when, None)
        self._hub.wait(self._watcher)
        with suppress(BlockingIOError):
            os.read(self._fd, 8)

    def close(self) -> None:
        self._watcher.close()
        os.close(self._fd)


class _LoopTimer:
    """For systems without timerfd: as exact as the event loop."""

    def wait_until(self, due_ns: int) -> None:
        while (rest_ns := due_ns - monotonic_ns()) > 0:
            gevent.sleep(rest_ns / NS_PER_S)

    def give_way(self) -> None:
        gevent.sleep(_LOOK_NS / NS_PER_S)

    def close(self) -> None:
        """Nothing is held."""


def make_timer() -> Timer:
    """The most exact timer this system has. One greenlet may wait on it at a time."""
    if sys.platform == "linux":
        try:
            return _KernelTimer(ctypes.CDLL(None, use_errno=True))
        except (OSError, AttributeError):
            pass
    return _LoopTimer()
