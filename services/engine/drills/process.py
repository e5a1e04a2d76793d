"""The engine process that is played: slowed, hung, robbed of memory, and replaced by another as its drill says."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from socket import socket
from typing import Any

from services.engine.admin import PREFIX
from services.engine.drills.conditions import WELL, Conditions
from services.engine.drills.drill import Drill
from services.engine.drills.kinds import Fault
from services.engine.engine import Engine
from services.engine.faces.face import Face
from services.engine.http import Connection, Handler, Request
from services.engine.service import Service
from services.engine.serving import Door

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Running:
    """One incarnation: an engine, and who answers for it at each door."""

    engine: Engine
    services: Sequence[Service]


class Process:
    """What is running now, and the drill that it lives through.

    Args:
        start: makes a process; with None, of the version it was asked for at first.
        faults: begin their `at` after now.
        connections: all that are open.
    """

    def __init__(
        self, face: Face, start: Callable[[Process, str | None], Running], faults: Iterable[Fault],
        connections: set[Connection],
    ) -> None:  # fmt: skip
        self._face = face
        self._start = start
        self._connections = connections
        self._drill = Drill(faults, now_s=time.monotonic())
        self._conditions = WELL
        self._version: str | None = None
        self._lost_blocks = 0
        self._next: asyncio.Handle | None = None
        self._running = start(self, None)
        self._turn()

    def doors(self, listeners: Sequence[socket]) -> list[Door]:
        """Who answers at each address."""
        return [
            Door(
                listener, self._handler(index), self._running.services[index].refusal, lambda: not self._conditions.down
            )
            for index, listener in enumerate(listeners)
        ]

    def close(self) -> None:
        """Stop the clocks."""
        if self._next is not None:
            self._next.cancel()
        self._running.engine.close()

    def plan(self, fault: Fault) -> int:
        """One fault more; returns its number. Raises InputError."""
        if fault.next_version is not None:
            self._face.spoken(fault.next_version, field="version")
        number = self._drill.add(fault, time.monotonic())
        self._soon()
        return number

    def clear(self, number: int | None = None) -> int:
        """End and forget a fault, or all of them; returns how many. Another version stays."""
        cleared = self._drill.clear(number)
        self._soon()
        return cleared

    def listed(self) -> list[dict[str, Any]]:
        """See `Drill.listed`."""
        return self._drill.listed(time.monotonic())

    def _handler(self, index: int) -> Handler:
        def handle(connection: Connection, request: Request) -> None:
            service = self._running.services[index]
            if self._conditions.loading and not request.path.startswith(PREFIX):
                connection.respond(503, service.refusal(503, "The model is loading."))
            else:
                service.handle(connection, request)

        return handle

    def _soon(self) -> None:
        """After what is being answered now."""
        self._arm(0.0)

    def _arm(self, wait_s: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = asyncio.get_running_loop().call_later(wait_s, self._turn)

    def _turn(self) -> None:
        now_s = time.monotonic()
        turn = self._drill.advance(now_s)
        for fault in turn.began:
            log.warning("drill: %s begins", fault.kind)
            if fault.restarts:
                self._restart(fault.next_version)
        self._apply(turn.conditions)
        next_s = self._drill.next_event_s(now_s)  # of the same moment: what begins meanwhile is still to come
        if next_s < float("inf"):
            self._arm(max(0.0, next_s - time.monotonic()))

    def _restart(self, version: str | None) -> None:
        self._version = version or self._version
        self._running.engine.close()
        for connection in list(self._connections):
            connection.abort()
        self._lost_blocks = 0
        self._running = self._start(self, self._version)

    def _apply(self, conditions: Conditions) -> None:
        self._conditions = conditions
        engine = self._running.engine
        engine.scheduler.slowness = conditions.slowness
        engine.hold(conditions.hung)
        kv = engine.scheduler.kv
        more = min(conditions.lost_blocks - self._lost_blocks, kv.free_blocks)
        if more > 0:
            kv.take(more)
        else:
            kv.release(-more, ())
        self._lost_blocks += more
        for service in self._running.services:
            service.refusals, service.breaks = conditions.refusals, conditions.breaks
