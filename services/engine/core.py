"""The engine in simulated time: a frontend that takes requests one after the other, and steps that follow each other.

Pure: the caller brings the time. The HTTP server drives it by a scaled clock, a simulation by jumping from event to
event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from pydantic import Field

from cliffwatch.config import ConfigModel
from services.engine.scheduler import Scheduler, Sequence, Step


class FrontendTime(ConfigModel):
    """What a request costs before the scheduler sees its prompts, in seconds.

    The frontend is one thread. It takes `request_s`, and `request_token_s` per token of all prompts, to read a request;
    then each prompt passes in turn: `prompt_s`, and `token_s` per token (`hash_token_s` more where blocks are hashed
    for a prefix cache). Tokens that steps bring meanwhile wait until it is done with that request.
    """

    request_s: float = Field(ge=0)
    request_token_s: float = Field(ge=0)
    prompt_s: float = Field(ge=0)
    token_s: float = Field(ge=0)
    hash_token_s: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Ended:
    """A step that ended, the sequences that got a token by it, and when those leave the frontend."""

    step: Step
    emitted: list[Sequence]
    leaves_s: float


class Core:
    """Frontend, scheduler and the one step in flight.

    Args:
        max_lag_s: how far behind the caller's time steps may be and still catch up. A caller that was held up for
            longer (a busy machine) sees the rest of its delay as delay, not as a burst of instant steps.
    """

    def __init__(self, scheduler: Scheduler, frontend: FrontendTime, *, max_lag_s: float = float("inf")) -> None:
        self.scheduler = scheduler
        self.frontend = frontend
        self._max_lag_s = max_lag_s
        self._arriving: deque[tuple[float, Sequence]] = deque()
        self._frontend_busy: deque[tuple[float, float]] = deque()  # (start, end), one a request, in order
        self._frontend_free_s = 0.0
        self._step: Step | None = None
        self._step_ends_s = 0.0
        self._leaving: deque[Ended] = deque()

    def submit(self, sequences: Seq[Sequence], now_s: float) -> list[float]:
        """Hand the prompts of one request to the frontend; returns when the scheduler will have each."""
        times = self.frontend
        token_s = times.token_s + (times.hash_token_s if self.scheduler.kv.sharing else 0.0)
        start_s = max(now_s, self._frontend_free_s)
        at_s = start_s + times.request_s + times.request_token_s * sum(item.prompt_tokens for item in sequences)
        ready = []
        for sequence in sequences:
            at_s += times.prompt_s + token_s * sequence.prompt_tokens
            ready.append(at_s)
            self._arriving.append((at_s, sequence))
        self._frontend_busy.append((start_s, at_s))
        self._frontend_free_s = at_s
        return ready

    def next_event_s(self) -> float | None:
        """When `advance` has something to do next; None while idle."""
        step_s = self._next_step_event_s()
        if self._leaving and (step_s is None or self._leaving[0].leaves_s < step_s):
            return self._leaving[0].leaves_s
        return step_s

    def advance(self, now_s: float) -> tuple[list[Ended], Step | None]:
        """Do what is due by `now_s`: returns steps whose tokens leave now, and the step that was started, if any.

        One call ends at most one step, so a caller can deliver its tokens before the next.
        """
        started = None
        at_s = self._next_step_event_s()
        if at_s is not None and at_s <= now_s:
            if self._step is not None:
                self._end_step(self._step, at_s)
            started = self._start_step(max(at_s, now_s - self._max_lag_s))
        leaving: list[Ended] = []
        while self._leaving and self._leaving[0].leaves_s <= now_s:
            leaving.append(self._leaving.popleft())
        return leaving, started

    def _next_step_event_s(self) -> float | None:
        if self._step is not None:
            return self._step_ends_s
        return self._arriving[0][0] if self._arriving else None

    def _end_step(self, step: Step, at_s: float) -> None:
        busy = self._frontend_busy
        while busy and busy[0][1] <= at_s:
            busy.popleft()
        leaves_s = busy[0][1] if busy and busy[0][0] <= at_s else at_s
        self._leaving.append(Ended(step, self.scheduler.complete(step), leaves_s))

    def _start_step(self, start_s: float) -> Step | None:
        while self._arriving and self._arriving[0][0] <= start_s:
            _, sequence = self._arriving.popleft()
            if not sequence.done:
                self.scheduler.add(sequence)
        self._step = self.scheduler.plan()
        if self._step is not None:
            self._step_ends_s = start_s + self._step.duration_s
        return self._step
