"""Reads that are stamped and not yet looked at."""

from __future__ import annotations

from typing import Protocol

import gevent


class Taker(Protocol):
    """Looks at what was read from it."""

    def take(self, stamp_ns: int, data: bytes) -> None: ...


class Inbox:
    """Reads of all connections that are stamped and not yet looked at; the loop empties it before it waits again."""

    def __init__(self) -> None:
        self._loop = gevent.get_hub().loop
        self._reads: list[tuple[Taker, int, bytes]] = []

    def put(self, connection: Taker, stamp_ns: int, data: bytes) -> None:
        if not self._reads:
            self._loop.run_callback(self._hand_out)
        self._reads.append((connection, stamp_ns, data))

    def _hand_out(self) -> None:
        reads, self._reads = self._reads, []
        for connection, stamp_ns, data in reads:
            connection.take(stamp_ns, data)
