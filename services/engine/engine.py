"""The engine in real time: drives the core by a scaled clock, hands tokens to their answers, and tells what it did."""

from __future__ import annotations

import asyncio
import time

from services.engine.answering import Answer, Choice
from services.engine.assembly import Tuned
from services.engine.clock import ScaledClock, Timer
from services.engine.core import Core
from services.engine.observing import Observer
from services.engine.sequence import Sequence

CATCH_UP_S = 0.01  # a delay of the machine up to this is made up for; what is beyond stays a delay


class Engine:
    """Sequences in, tokens out.

    Args:
        tuned: queue, batch and cache, and their options.
        core: the same in simulated time.
        clock: simulated against real time.
        observer: is told of the work.
    """

    def __init__(self, tuned: Tuned, core: Core, clock: ScaledClock, observer: Observer) -> None:
        self.tuned = tuned
        self.scheduler = tuned.scheduler
        self.observer = observer
        self._core = core
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer = Timer(self._loop, self._tick)
        self._armed_s: float | None = None
        self._held = False

    def submit(self, answer: Answer) -> None:
        """Hand an answer's sequences to the engine; their tokens come to it.

        Simulated time starts when the request was received: reading it took real time, which the profile's own share
        for reading stands for.
        """
        sequences = [choice.sequence for choice in answer.choices]
        ready = self._core.submit(sequences, self._clock.simulated_s(answer.received_s))
        for choice, ready_s in zip(answer.choices, ready, strict=True):
            choice.queued_s = self._clock.real_s(ready_s)
        self._arm()

    def over(self, sequences: int) -> str | None:
        """The option whose limit forbids so many sequences more; None when they may come."""
        return self._core.over(sequences)

    def cancel(self, answer: Answer) -> None:
        """The client is gone: take its sequences out."""
        answer.cancelled = True
        self.observer.cancelled(answer)
        for choice in answer.choices:
            self.scheduler.cancel(choice.sequence)

    def fail(self, answer: Answer) -> None:
        """An answer ends before its tokens do: take its sequences out."""
        answer.cancelled = True
        self.observer.failed(answer)
        for choice in answer.choices:
            self.scheduler.cancel(choice.sequence)

    def hold(self, held: bool) -> None:
        """Stand still, with everything in its place; or go on."""
        self._held = held
        self._arm()

    def close(self) -> None:
        """Stop the clock."""
        self._held = True  # a tick may be on its way
        self._timer.close()

    def _arm(self) -> None:
        if self._held:
            return
        due_s = self._core.next_event_s()
        if due_s == self._armed_s or due_s is None:
            return
        self._armed_s = due_s
        deadline_s = self._clock.real_s(due_s)
        if deadline_s <= time.monotonic():
            self._loop.call_soon(self._tick)  # sockets get their turn between two steps that are both due
        else:
            self._timer.at(deadline_s)

    def _tick(self) -> None:
        self._armed_s = None
        if self._held:
            return
        try:
            turn = self._core.advance(self._clock.simulated_s(time.monotonic()))
            now_s = time.monotonic()
            if turn.emitted:
                self._deliver(turn.emitted, now_s)
            if turn.started is not None:
                self.observer.started(turn.started, now_s)
        finally:
            self._arm()  # whatever happened to one answer, the engine goes on

    def _deliver(self, emitted: list[Sequence], now_s: float) -> None:
        dirty: list[Answer] = []
        gaps: dict[float, int] = {}
        bursts: dict[int, int] = {}
        tokens = prefilled_tokens = 0
        for sequence in emitted:
            choice: Choice = sequence.tag
            answer = choice.answer
            if answer.cancelled:
                continue
            if choice.first_s:
                gap_s = now_s - choice.last_s
                gaps[gap_s] = gaps.get(gap_s, 0) + 1
                bursts[sequence.burst] = bursts.get(sequence.burst, 0) + 1
            else:
                choice.first_s = now_s
                prefilled_tokens += sequence.prompt_tokens
                self.observer.first_token(choice)
            choice.last_s = now_s
            tokens += sequence.burst
            if answer.take(choice, sequence.burst):
                self.observer.finished(choice)
            if not answer.dirty:
                answer.dirty = True
                dirty.append(answer)
        self.observer.delivered(tokens, prefilled_tokens, gaps, now_s)
        if self.scheduler.speculation is not None and bursts:
            self.observer.speculated(bursts)
        for answer in dirty:
            answer.flush()
