"""The engine in simulated time: a frontend that takes requests one after the other, and steps that follow each other.

Pure: the caller brings the time. The HTTP server drives it by a scaled clock, a simulation by jumping from event to
event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from cliffwatch.config import ConfigModel
from services.engine.scheduler import Scheduler, Step
from services.engine.sequence import Sequence


class IntakeTime(ConfigModel):
    """What prompts cost before they are in a step, in seconds.

    The frontend is one thread: it takes `request_s`, and `token_s` per token of all its prompts, to read a request;
    then its prompts pass to the engine, one each `prompt_s`. The engine takes prompts in between two steps; where it
    keeps a prefix cache, it hashes them first: `hash_token_s` per token. An idle engine starts its first step `wake_s`
    after the first prompt is there, with those that came meanwhile.
    """

    request_s: float = Field(ge=0)
    token_s: float = Field(ge=0)
    prompt_s: float = Field(ge=0)
    wake_s: float = Field(ge=0)
    hash_token_s: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Turn:
    """What `Core.advance` did: the step that ended with the sequences that got a token, the step that started."""

    emitted: list[Sequence]
    started: Step | None


NOTHING = Turn([], None)


class Core:
    """Frontend, scheduler and the one step in flight.

    Args:
        max_lag_s: how far behind the caller's time steps may be and still catch up. A caller that was held up for
            longer (a busy machine) sees the rest of its delay as delay, not as a burst of instant steps.
    """

    def __init__(self, scheduler: Scheduler, intake: IntakeTime, *, max_lag_s: float = float("inf")) -> None:
        self.scheduler = scheduler
        self.intake = intake
        self._max_lag_s = max_lag_s
        self._arriving: deque[tuple[float, Sequence]] = deque()
        self._frontend_free_s = 0.0
        self._step: Step | None = None
        self._step_ends_s = 0.0

    def submit(self, sequences: Seq[Sequence], now_s: float) -> list[float]:
        """Hand the prompts of one request to the frontend; returns when the engine will have each."""
        times = self.intake
        at_s = max(now_s, self._frontend_free_s) + times.request_s
        at_s += times.token_s * sum(sequence.prompt_tokens for sequence in sequences)
        ready = []
        for sequence in sequences:
            at_s += times.prompt_s
            ready.append(at_s)
            self._arriving.append((at_s, sequence))
        self._frontend_free_s = at_s
        return ready

    def over(self, sequences: int) -> str | None:
        """The option whose limit forbids so many sequences more; None when they may come.

        As in vLLM a limit of sequences counts all that have not ended, and one of tokens counts prompts in full until
        their first token.
        """
        limits, scheduler = self.scheduler.limits, self.scheduler
        if limits.max_unfinished is not None:
            coming = sum(1 for _, sequence in self._arriving if not sequence.done)
            if coming + len(scheduler.waiting) + scheduler.running + sequences > limits.max_unfinished:
                return "max_num_queued_reqs"
        if limits.max_queued_tokens is not None:
            tokens = sum(sequence.prompt_tokens for _, sequence in self._arriving if not sequence.done)
            if tokens + scheduler.queued_tokens >= limits.max_queued_tokens:
                return "max_num_queued_tokens"
        return None

    def next_event_s(self) -> float | None:
        """When `advance` has something to do next; None while idle."""
        if self._step is not None:
            return self._step_ends_s
        return self._arriving[0][0] + self.intake.wake_s if self._arriving else None

    def advance(self, now_s: float) -> Turn:
        """End the step that is due by `now_s`, if any, and start the next one.

        One call ends at most one step, so a caller can deliver its tokens before the next.
        """
        at_s = self.next_event_s()
        if at_s is None or at_s > now_s:
            return NOTHING
        emitted = [] if self._step is None else self.scheduler.complete(self._step)
        start_s = self._take_in(max(at_s, now_s - self._max_lag_s))
        self._step = self.scheduler.plan()
        if self._step is not None:
            self._step_ends_s = start_s + self._step.duration_s
        return Turn(emitted, self._step)

    def leap(self, until_s: float) -> int:
        """End at once as many of the coming steps as are alike and end before `until_s`; returns their tokens.

        To the last bit what `advance` would do: nothing is taken in, and no sequence gets its first or its last token.
        The caller adds nothing before `until_s`.
        """
        step = self._step
        if step is None or (most := self.scheduler.repeats(step)) < 1:
            return 0
        if self._arriving:
            until_s = min(until_s, self._arriving[0][0])
        ends_s = self._step_ends_s
        if ends_s >= until_s:
            return 0
        # Added up one by one, as `advance` does: a sum in another order would differ in its last bit.
        durations = self.scheduler.durations(step, most)
        ends = np.add.accumulate(np.concatenate([[ends_s], durations]))
        count = min(most, int(np.searchsorted(ends, until_s, "left")))
        self.scheduler.repeat(step, count)
        self._step = Step(step.decoding, duration_s=float(durations[count - 1]))
        self._step_ends_s = float(ends[count])
        return count * len(step.decoding)

    def _take_in(self, now_s: float) -> float:
        """Queue the prompts that are there, and those that come while these are hashed; returns when that is done."""
        hash_s = self.intake.hash_token_s if self.scheduler.kv.sharing else 0.0
        while self._arriving and self._arriving[0][0] <= now_s:
            _, sequence = self._arriving.popleft()
            if not sequence.done:
                now_s += hash_s * sequence.prompt_tokens
                self.scheduler.add(sequence)
        return now_s
