"""Signals by which a person or a system ends a command; each is told in words."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent

from cliffwatch.errors import ExitCode

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: a terminal that was closed


@contextmanager
def on_ending_signals(act: Callable[[str], None]) -> Iterator[None]:
    """Call `act` with a signal's name, in a greenlet, for each one that comes meanwhile."""
    watchers = [gevent.signal_handler(number, act, signal.Signals(number).name) for number in ENDING_SIGNALS]
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.cancel()


@contextmanager
def leaving_at_once(when: str) -> Iterator[None]:
    """While nothing has begun there is nothing to close: a signal ends us there and then, in whatever greenlet."""

    def leave(_name: str) -> None:
        try:
            say_interrupted(when)
        finally:  # whether or not anybody still reads what we say
            os._exit(ExitCode.INTERRUPTED)

    with on_ending_signals(leave):
        yield


def say_interrupted(when: str = "") -> None:
    """On standard error."""
    print(f"cliffwatch: interrupted {when}".rstrip(), file=sys.stderr, flush=True)  # noqa: T201
