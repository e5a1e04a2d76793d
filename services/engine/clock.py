"""Simulated seconds against the machine's clock, and a timer finer than an event loop's milliseconds."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Callable

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Spec(ctypes.Structure):
    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


class ScaledClock:
    """Simulated time that runs `speed` times as fast as the machine's monotonic clock."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._origin_s = time.monotonic()

    def simulated_s(self, real_s: float) -> float:
        """Simulated seconds since the clock was made, at a monotonic time."""
        return (real_s - self._origin_s) * self.speed

    def real_s(self, simulated_s: float) -> float:
        """The monotonic time at which a simulated time is reached."""
        return self._origin_s + simulated_s / self.speed


class Timer:
    """One absolute deadline at a time, on Linux's timerfd.

    An event loop rounds its timers to milliseconds; an engine step may be shorter than that.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        self._fd = _libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._spec = _Spec(0, 0, 0, 0)
        self._reference = ctypes.byref(self._spec)
        loop.add_reader(self._fd, self._fired)

    def at(self, deadline_s: float) -> None:
        """Call back once at a time of the monotonic clock, in place of any deadline before."""
        self._spec.value_s = int(deadline_s)
        self._spec.value_ns = max(1, int((deadline_s - int(deadline_s)) * 1e9))
        _libc.timerfd_settime(self._fd, _ABSOLUTE, self._reference, None)

    def close(self) -> None:
        """Let the descriptor go."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:  # a new deadline was set between the event and this read
            return
        self._callback()
