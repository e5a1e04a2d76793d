"""The master's clock as a worker knows it: asked for over the link, like NTP, as soon as it joins and all along.

All of a run is timed by monotonic clocks. The run's zero is an instant on the master's; each worker finds it on its own
through the offset measured here, so the parts of the schedule fit together whatever the hosts' wall clocks say.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import gevent
import gevent.event
import gevent.lock

from cliffwatch.records.clock import WorkerClock
from cliffwatch.stats.clock import ClockOffset, Exchange, clock_offset
from loadgen import messages

QUESTIONS = 8
EVERY_S = 10.0
_APART_S = 0.01
_ANSWERS_WITHIN_S = 1.0


def answer_questions(runner: Any) -> None:
    """Have a master answer its workers' questions."""

    def answer(msg: Any, **_: object) -> None:
        received_ns = time.monotonic_ns()
        question = messages.read(msg.data, messages.ClockQuestion)
        if question is not None:
            answered_ns = time.monotonic_ns()
            told = messages.ClockAnswer(
                sent_ns=question.sent_ns,
                received_ns=received_ns,
                answered_ns=answered_ns,
                wall_ns=time.time_ns() - answered_ns,
            )
            runner.send_message(messages.CLOCK_ANSWER, messages.plain(told), client_id=msg.node_id)

    runner.register_message(messages.CLOCK_QUESTION, answer)


@dataclass(frozen=True, slots=True)
class _Look:
    """`master` is the master's monotonic clock minus ours, `wall_ns` our wall clock minus the master's."""

    master: ClockOffset
    wall_ns: int


class MasterClock:
    """A worker's view of its master's clock; where both are one process, it is the same clock."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._exchanges: list[Exchange] = []
        self._wall_ns = 0  # the master's wall clock minus its monotonic one
        self._answered = gevent.event.Event()
        self._looking = gevent.lock.RLock()
        self._run_id: str | None = None
        self._zero: _Look | None = None
        self._last: _Look | None = None
        self._remote = hasattr(runner, "master_host")
        if self._remote:
            runner.register_message(messages.CLOCK_ANSWER, self._on_answer)
            gevent.spawn(self._look_again)

    def look(self) -> None:
        """Ask now; takes a tenth of a second where the master is well. Without an answer, what was known stays."""
        if not self._remote:
            return
        with self._looking:
            self._ask()
            offset = clock_offset(self._exchanges)
        if offset is not None:
            own_wall_ns = time.time_ns() - time.monotonic_ns()
            self._last = _Look(offset, own_wall_ns - self._wall_ns - offset.offset_ns)

    def begin(self, run_id: str, zero_ns: int, zero_unix_ns: int) -> int:
        """A run's zero, given by the master's monotonic and wall clocks, on our monotonic clock.

        From here on `reading` is about this run. A master that never answered leaves us our wall clock.
        """
        if run_id != self._run_id:
            self._run_id, self._zero = run_id, self._last
        if not self._remote:
            return zero_ns
        if self._last is None:
            return zero_unix_ns - (time.time_ns() - time.monotonic_ns())
        return zero_ns - self._last.master.offset_ns

    def reading(self) -> WorkerClock | None:
        """What is known of the two clocks in this run; None without an answer, or where there is only one clock."""
        if self._zero is None or self._last is None:
            return None
        zero, last = self._zero, self._last
        again = last is not zero
        return WorkerClock(
            offset_s=zero.wall_ns / 1e9,
            bound_s=zero.master.bound_ns / 1e9,
            drift_s=(zero.master.offset_ns - last.master.offset_ns) / 1e9 if again else None,
            drift_bound_s=(zero.master.bound_ns + last.master.bound_ns) / 1e9 if again else None,
        )

    def _ask(self) -> None:
        self._exchanges.clear()
        self._answered.clear()
        for _ in range(QUESTIONS):
            question = messages.ClockQuestion(sent_ns=time.monotonic_ns())
            self._runner.send_message(messages.CLOCK_QUESTION, messages.plain(question))
            gevent.sleep(_APART_S)
        self._answered.wait(_ANSWERS_WITHIN_S)

    def _look_again(self) -> None:
        while True:
            self.look()
            gevent.sleep(EVERY_S)

    def _on_answer(self, msg: Any, **_: object) -> None:
        returned_ns = time.monotonic_ns()
        answer = messages.read(msg.data, messages.ClockAnswer)
        if answer is not None:
            self._wall_ns = answer.wall_ns
            self._exchanges.append(Exchange(answer.sent_ns, answer.received_ns, answer.answered_ns, returned_ns))
            if len(self._exchanges) >= QUESTIONS:
                self._answered.set()
