"""What the engine observes of itself, in neutral quantities: a face decides which metrics they become.

Times are those the client lived through, in real seconds at the speed served.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from services.engine.answering import Answer, Choice
from services.engine.metrics import Metrics
from services.engine.scheduler import Scheduler, Step
from services.engine.tokenizer import BLOCK_TOKENS

KEPT_STEPS = 1000  # for those who ask for the steps themselves; older ones go
RATE_STEPS = 40  # a rate of tokens is of the last whole so many steps


@dataclass(frozen=True, slots=True)
class StepNote:
    """One step as it started: its number, simulated length, and what was in it."""

    number: int
    started_s: float  # monotonic
    duration_s: float
    prompts: int
    prompt_tokens: int
    decoding: int
    preempted: int
    running: int
    waiting: int
    free_blocks: int
    hit_tokens: int
    missed_tokens: int


class Observer:
    """Feeds a face's metrics; keeps the latest steps for those who read them one by one."""

    def __init__(self, metrics: Metrics, scheduler: Scheduler) -> None:
        self._metrics = metrics
        self._scheduler = scheduler
        self._unread: deque[StepNote] = deque(maxlen=KEPT_STEPS)  # who reads steps takes them away
        self._last: StepNote | None = None
        self._lookup_tokens = self._found_tokens = 0
        self._count = 0
        self._hit_rate = 0.0  # of the last step that took prompts in
        self._rate_tokens = 0
        self._rate_since_s = 0.0
        self._tokens_per_s = 0.0

    def started(self, step: Step, now_s: float) -> None:
        """A step started: its admissions and preemptions."""
        lookup = found = 0
        for sequence in step.admitted:
            choice: Choice = sequence.tag
            if not choice.scheduled_s:
                choice.scheduled_s = max(now_s, choice.queued_s)
                lookup += sequence.prompt_tokens
                found += sequence.cached_tokens
        observe = self._metrics.observe
        if lookup:
            observe("lookup_tokens", lookup)
            observe("found_tokens", found)
            self._hit_rate = found / lookup
            self._lookup_tokens += lookup
            self._found_tokens += found
            observe("reused_blocks", found // BLOCK_TOKENS)
            observe("missed_blocks", -(-(lookup - found) // BLOCK_TOKENS))
        observe("steps")
        if step.preempted:
            observe("preemptions", len(step.preempted))
        self._count += 1
        scheduler = self._scheduler
        self._last = StepNote(
            number=self._count,
            started_s=now_s,
            duration_s=step.duration_s,
            prompts=len(step.chunks),
            prompt_tokens=sum(new for _, new in step.chunks),
            decoding=len(step.decoding),
            preempted=len(step.preempted),
            running=scheduler.running,
            waiting=len(scheduler.waiting),
            free_blocks=scheduler.kv.free_blocks,
            hit_tokens=found,
            missed_tokens=lookup - found,
        )
        self._unread.append(self._last)

    def first_token(self, choice: Choice) -> None:
        """A prompt is computed."""
        sequence = choice.sequence
        observe = self._metrics.observe
        observe("ttft_s", choice.first_s - choice.answer.received_s, tags={"streaming": _streaming(choice)})
        observe("prompt_tokens", sequence.prompt_tokens)
        observe("computed_tokens", sequence.prompt_tokens - sequence.cached_tokens)
        observe("cached_tokens", sequence.cached_tokens)

    def delivered(self, tokens: int, prefilled_tokens: int, gaps: dict[float, int], now_s: float) -> None:
        """A step's tokens are handed out; sequences that moved together share one gap."""
        observe = self._metrics.observe
        for gap_s, times in gaps.items():
            observe("itl_s", gap_s, times)
        observe("generated_tokens", tokens)
        observe("step_tokens", tokens + prefilled_tokens)
        self._rate_tokens += tokens
        if not self._count % RATE_STEPS:
            self._tokens_per_s = self._rate_tokens / (now_s - self._rate_since_s) if self._rate_since_s else 0.0
            self._rate_tokens, self._rate_since_s = 0, now_s

    def speculated(self, bursts: dict[int, int]) -> None:
        """What drafts brought: tokens that a sequence got, to how many sequences. Of a draft's tokens those count as
        accepted that were handed out.
        """
        speculation, observe = self._scheduler.speculation, self._metrics.observe
        drafted = speculation.tokens if speculation else 0
        drafts = sum(bursts.values())
        observe("drafts", drafts)
        observe("draft_tokens", drafts * drafted)
        observe("accepted_tokens", sum((burst - 1) * times for burst, times in bursts.items()))
        for position in range(drafted):
            accepted = sum(times for burst, times in bursts.items() if burst > position + 1)
            observe("accepted_at", accepted, tags={"position": str(position)})

    def finished(self, choice: Choice) -> None:
        """A request is finished; one answer of several counts by itself."""
        sequence, job, tokens = choice.sequence, choice.answer.job, choice.sent
        observe = self._metrics.observe
        tags = {"streaming": _streaming(choice), "reason": choice.ending.reason}
        decode_s = choice.last_s - choice.first_s
        observe("finished", tags=tags)
        observe("e2e_s", choice.last_s - choice.answer.received_s, tags=tags)
        observe("queue_s", choice.scheduled_s - choice.queued_s, tags=tags)
        observe("prefill_s", choice.first_s - choice.scheduled_s, tags=tags)
        observe("decode_s", decode_s, tags=tags)
        observe("inference_s", choice.last_s - choice.scheduled_s, tags=tags)
        observe("tpot_s", decode_s / (tokens - 1) if tokens > 1 else 0.0, tags=tags)
        observe("answer_preemptions", sequence.preemptions, tags=tags)
        observe("answer_prompt_tokens", sequence.prompt_tokens, tags=tags)
        observe("answer_cached_tokens", sequence.cached_tokens, tags=tags)
        observe("answer_computed_tokens", sequence.prompt_tokens - sequence.cached_tokens, tags=tags)
        observe("answer_tokens", tokens, tags=tags)
        observe("answer_choices", job.choices_per_prompt, tags=tags)
        if job.max_tokens is not None:
            observe("answer_max_tokens", job.max_tokens, tags=tags)

    def cancelled(self, answer: Answer) -> None:
        """A client is gone; what is left of its answers ends here."""
        if answer.remaining:
            self._metrics.observe("cancelled", 1.0, answer.remaining)

    def failed(self, answer: Answer) -> None:
        """An answer ends in an error."""
        self._metrics.observe("failed", 1.0, answer.remaining)

    def take_steps(self) -> list[StepNote]:
        """The steps since the last time, at most `KEPT_STEPS`; whoever asks takes them away."""
        taken, self._unread = list(self._unread), deque(maxlen=KEPT_STEPS)
        return taken

    def stand(self) -> None:
        """How things stand now, before a scrape."""
        scheduler, observe = self._scheduler, self._metrics.observe
        kv = scheduler.kv
        used = kv.used_blocks
        last = self._last if scheduler.running else None
        observe("awake")
        observe("running", scheduler.running)
        observe("waiting", len(scheduler.waiting))
        observe("prefilling", last.prompts if last else 0)
        observe("decoding", last.decoding if last else 0)
        observe("context_tokens", last.prompt_tokens if last else 0)
        observe("paused", last.preempted if last else 0)
        observe("iterations", self._count)
        observe("iteration_s", self._last.duration_s if self._last else 0.0)
        observe("now_s", time.time())
        observe("kv_reused_blocks", self._found_tokens // BLOCK_TOKENS)
        observe("life_hit_rate", self._found_tokens / self._lookup_tokens if self._lookup_tokens else 0.0)
        observe("max_sequences", scheduler.limits.max_sequences)
        observe("kv_usage", kv.usage)
        observe("kv_blocks", kv.capacity_blocks)
        observe("kv_used_blocks", used)
        observe("kv_free_blocks", kv.free_blocks)
        observe("kv_tokens", kv.capacity_blocks * BLOCK_TOKENS)
        observe("kv_used_tokens", used * BLOCK_TOKENS)
        observe("block_tokens", BLOCK_TOKENS)
        observe("hit_rate", self._hit_rate)
        observe("tokens_per_s", self._tokens_per_s if scheduler.running else 0.0)


def _streaming(choice: Choice) -> str:
    return "true" if choice.answer.job.stream else "false"
