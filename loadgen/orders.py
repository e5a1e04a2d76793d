"""What the master tells its workers, and tells again until it has been heard: any message may be lost on the way.

A worker's beat says which parts it holds. A part that it was given and does not hold is given again; a worker repeats
that it is ready until it is sent off; one that goes on in a run that stops is stopped again. Repeats change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from loadgen import messages
from loadgen.lease import BEAT_S
from loadgen.members import Part
from loadgen.preparation import Preparation

ASSIGN_AGAIN_S = 2 * BEAT_S  # a beat that crossed the assignment on its way says nothing about it


class Orders:
    """Sends a run's messages to its workers."""

    def __init__(self, runner: Any, preparation: Preparation, clock: Callable[[], float] = time.monotonic) -> None:
        self._runner = runner
        self._preparation = preparation
        self._clock = clock
        self._assigned_s: dict[int, float] = {}

    def assign(self, part: Part) -> None:
        """Give a part to its worker."""
        self._assigned_s[part.number] = self._clock()
        self._send(messages.ASSIGN, self._preparation.assignment(part.number, part.ids, part.users), part.client_id)

    def assign_again(self, parts: Iterable[Part]) -> None:
        """Give parts that their worker does not know of, unless that was done just now."""
        for part in parts:
            if self._clock() - self._assigned_s.get(part.number, float("-inf")) >= ASSIGN_AGAIN_S:
                self.assign(part)

    def go(self, part: Part, t0_ns: int, t0_unix_ns: int) -> None:
        """Send a part off; the run's zero is on our monotonic and wall clocks."""
        run_id = self._preparation.run_id
        go = messages.Go(run_id=run_id, shard=part.number, t0_ns=t0_ns, t0_unix_ns=t0_unix_ns)
        self._send(messages.GO, go, part.client_id)

    def stop(self, client_ids: Iterable[str], *, now: bool) -> None:
        """Let workers end what they have, `now` without a drain."""
        for client_id in client_ids:
            self._send(messages.STOP, messages.Stop(now=now), client_id)

    def stand_by(self, client_id: str, why: str) -> None:
        """Tell a worker that it has nothing to send."""
        self._send(messages.STANDBY, messages.Standby(run_id=self._preparation.run_id, text=why), client_id)

    def _send(self, kind: str, message: Any, client_id: str) -> None:
        self._runner.send_message(kind, messages.plain(message), client_id=client_id)
