"""The engine in simulated time: a frontend that takes prompts one after the other, and steps that follow each other.

Pure: the caller brings the time. The HTTP server drives it by a scaled clock, a simulation by jumping from event to
event.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from pydantic import Field

from cliffwatch.config import ConfigModel
from services.engine.scheduler import Scheduler, Sequence, Step


class FrontendTime(ConfigModel):
    """What a prompt costs before the scheduler sees it, in seconds.

    A request waits `request_s` (HTTP, validation, the way back of the first token). Its prompts then pass one after the
    other: `prompt_s` each, and `token_s` per token (`cached_token_s` more where blocks are hashed for a prefix cache).
    """

    request_s: float = Field(ge=0)
    prompt_s: float = Field(ge=0)
    token_s: float = Field(ge=0)
    cached_token_s: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class Ended:
    """A step that ended at `at_s`, and the sequences that got a token by it."""

    at_s: float
    step: Step
    emitted: list[Sequence]


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
        self._frontend_free_s = 0.0
        self._step: Step | None = None
        self._step_ends_s = 0.0

    @property
    def waiting(self) -> int:
        """Sequences queued by the scheduler."""
        return len(self.scheduler.waiting)

    def submit(self, sequence: Sequence, now_s: float) -> float:
        """Hand a prompt to the frontend; returns when the scheduler will have it."""
        token_s = self.frontend.token_s
        if self.scheduler.kv.sharing:
            token_s += self.frontend.cached_token_s
        start_s = max(now_s + self.frontend.request_s, self._frontend_free_s)
        self._frontend_free_s = start_s + self.frontend.prompt_s + token_s * sequence.prompt_tokens
        self._arriving.append((self._frontend_free_s, sequence))
        return self._frontend_free_s

    def next_event_s(self) -> float | None:
        """When `advance` has something to do next; None while idle."""
        if self._step is not None:
            return self._step_ends_s
        return self._arriving[0][0] if self._arriving else None

    def advance(self, now_s: float) -> tuple[Ended | None, Step | None]:
        """End the step that is due by `now_s`, and start the next one; either may be None.

        One call ends at most one step, so a caller can deliver its tokens before the next.
        """
        ended = None
        at_s = self.next_event_s()
        if at_s is None or at_s > now_s:
            return None, None
        if self._step is not None:
            ended = Ended(at_s, self._step, self.scheduler.complete(self._step))
        start_s = max(at_s, now_s - self._max_lag_s)
        while self._arriving and self._arriving[0][0] <= start_s:
            _, sequence = self._arriving.popleft()
            if not sequence.done:
                self.scheduler.add(sequence)
        self._step = self.scheduler.plan()
        if self._step is not None:
            self._step_ends_s = start_s + self._step.duration_s
        return ended, self._step
