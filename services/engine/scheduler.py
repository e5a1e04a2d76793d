"""Continuous batching, step by step. Pure: no clock, no I/O; a caller says when a step starts and ends.

Each step has a budget of tokens. Sequences that decode get one token each; what is left of the budget goes to prompts,
in parts where they do not fit (chunked prefill), first come first served, or the most urgent first. A prompt starts
when a place, and room for its whole cache, are free. When the cache is full while sequences grow, the last in that
order gives up its blocks and starts over (preemption by recompute). Without chunked prefill a step holds either whole
prompts or decoding, and prompts that have room go first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import numpy as np

from services.engine.kv_cache import KvCache, blocks_for
from services.engine.memory import Memory, Window
from services.engine.sequence import Sequence
from services.engine.speculation import Speculation
from services.engine.step_time import Seconds, StepTime
from services.engine.tokenizer import BLOCK_TOKENS
from services.engine.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Limits:
    """What one step, and the engine, may hold.

    Attributes:
        chunked_prefill: whether prompts are cut to the budget; if not, a longer prompt has a step of its own.
        by_priority: whether a sequence's priority counts before its arrival.
        max_unfinished: sequences that may wait or run; None is any number.
        max_queued_tokens: tokens of prompts that are not computed yet, at which no more are taken; None is no limit.
    """

    token_budget: int
    max_sequences: int
    chunked_prefill: bool = True
    by_priority: bool = False
    max_unfinished: int | None = None
    max_queued_tokens: int | None = None


@dataclass(slots=True)
class Step:
    """What one step computes: `chunks` of prompts as (sequence, new tokens), and the sequences that decode."""

    decoding: list[Sequence]
    chunks: list[tuple[Sequence, int]] = field(default_factory=list)
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    duration_s: float = 0.0


class Scheduler:
    """The engine's queue, batch and cache."""

    def __init__(
        self,
        limits: Limits,
        kv: KvCache,
        step_time: StepTime,
        *,
        window: Window | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        self.limits = limits
        self.kv = kv
        self.step_time = step_time
        self.speculation = speculation
        self._width = 1 + (speculation.tokens if speculation else 0)  # tokens that a decoding sequence computes a step
        self.waiting = Waiting()
        self._memory = Memory(kv, window)
        self._order = count()
        self.slowness = 1.0  # how many times as long a step takes
        self._prefilling: list[Sequence] = []
        self._decoding: list[Sequence] = []
        self._context_tokens = 0  # that the decoding sequences read

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def unused_share(self) -> float | None:
        """Of the slots that sequences have reserved in the cache, those without a token yet; None of no slots."""
        unused = sum(self._memory.unused_slots(sequence) for sequence in (*self._decoding, *self._prefilling))
        slots = self.kv.used_blocks * BLOCK_TOKENS
        return unused / slots if slots else None

    @property
    def queued_tokens(self) -> int:
        """Tokens of the prompts that wait or are being computed."""
        fresh = [sequence for sequence in (*self.waiting, *self._prefilling) if not sequence.generated]
        return sum(sequence.prompt_tokens for sequence in fresh)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence. The caller has checked that its prompt fits an empty cache."""
        sequence.rank = self._rank(sequence, next(self._order))
        self.waiting.add(sequence)

    def obey(self, limits: Limits, step_time: StepTime) -> None:
        """Other limits and times from the next step on; who is there already is ranked by them too."""
        self.limits, self.step_time = limits, step_time
        waiting, self.waiting = list(self.waiting), Waiting()
        for sequence in (*waiting, *self._prefilling, *self._decoding):
            sequence.rank = self._rank(sequence, sequence.rank[1])
        for sequence in waiting:
            self.waiting.add(sequence)

    def _rank(self, sequence: Sequence, order: int) -> tuple[int, int]:
        return (sequence.priority if self.limits.by_priority else 0, order)

    def cancel(self, sequence: Sequence) -> None:
        """Take a sequence out wherever it is and give back its blocks; a finished one is left alone."""
        if sequence.done:
            return
        sequence.done = True
        if sequence in self._decoding:
            self._decoding.remove(sequence)
            self._context_tokens -= self._memory.reads(sequence)
        elif sequence in self._prefilling:
            self._prefilling.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._memory.release(sequence)

    def plan(self) -> Step | None:
        """The next step, or None when there is nothing to do. Changes queue, batch and cache holdings."""
        preempted = self._make_room_for_growth()
        if not self._decoding and not self._prefilling and not self.waiting:
            return None
        step = Step([], preempted=preempted)
        budget = self.limits.token_budget
        if self.limits.chunked_prefill:
            step.decoding = self._decoding[: budget // self._width]
            budget -= len(step.decoding) * self._width
        for sequence in self._prefilling:
            budget = self._chunk(step, sequence, budget)
        if not preempted:
            self._take_in(step, budget)
        if not step.chunks and not step.decoding:
            step.decoding = self._decoding[: budget // self._width]
        step.duration_s = self._duration(step)
        return step

    def complete(self, step: Step) -> list[Sequence]:
        """End a planned step; returns the sequences that got a token, prompts first, cancelled ones left out."""
        emitted = [sequence for sequence, new in step.chunks if not sequence.done and self._prefilled(sequence, new)]
        finished, reach_tokens, speculation = False, self._memory.reach_tokens, self.speculation
        for sequence in step.decoding:
            if sequence.done:
                continue
            new = 1
            if speculation is not None:
                new = sequence.burst = min(1 + speculation.draw(), sequence.max_tokens - sequence.generated)
            if sequence.computed + new <= reach_tokens:
                self._context_tokens += new
            else:
                self._context_tokens += max(0, reach_tokens - sequence.computed)
            sequence.computed += new
            sequence.generated += new
            if sequence.room >= new:
                sequence.room -= new
            else:
                self._memory.grow(sequence, new)
            finished = finished or sequence.generated >= sequence.max_tokens
            emitted.append(sequence)
        if finished:
            self._retire()
        return emitted

    def repeats(self, step: Step) -> int:
        """How many steps like a planned one follow it for sure, if nothing is added or cancelled: each the same
        sequences with one token more, none of which ends or fills its window, and room in the cache for all of them.

        What waits goes on waiting: in such a step there was no place for it, and none becomes free.
        """
        if step.chunks or step.preempted or len(step.decoding) < len(self._decoding) or not step.decoding:
            return 0
        if self.speculation is not None:
            return 0
        count = min(sequence.max_tokens - sequence.generated for sequence in step.decoding) - 1
        if self._memory.window:
            count = min([count, *(self._memory.reach_tokens - each.computed for each in self._growing(step))])
        room = self.kv.free_blocks - len(step.decoding)
        while count > 0 and sum(self._memory.blocks_to_grow(each, count) for each in step.decoding) > room:
            count //= 2
        return max(count, 0)

    def durations(self, step: Step, count: int) -> Seconds:
        """Of the `count` steps after a planned one that are like it (`repeats`)."""
        context = self._context_tokens + len(self._growing(step)) * np.arange(1, count + 1, dtype=np.int64)
        repeated = np.minimum(context, self.kv.repeated_blocks * BLOCK_TOKENS)
        return self.step_time.decode_seconds(len(step.decoding), context, repeated) * self.slowness

    def repeat(self, step: Step, count: int) -> None:
        """Complete a planned step and the next `count - 1` like it at once."""
        self._context_tokens += count * len(self._growing(step))
        for sequence in step.decoding:
            sequence.computed += count
            sequence.generated += count
            self._memory.grow(sequence, count)

    def _growing(self, step: Step) -> list[Sequence]:
        """The decoding sequences that read one token more in each step: those whose window is not full."""
        if self._memory.window is None:
            return step.decoding
        return [sequence for sequence in step.decoding if sequence.computed < self._memory.reach_tokens]

    def _prefilled(self, sequence: Sequence, new: int) -> bool:
        """Account for a computed chunk; whether it completed the prompt and so brought a token."""
        sequence.computed += new
        if sequence.computed < sequence.known_tokens:
            return False
        self._prefilling.remove(sequence)
        self._memory.prefilled(sequence)
        sequence.generated += 1
        sequence.burst = 1
        if sequence.generated >= sequence.max_tokens:
            sequence.done = True
            self._memory.release(sequence)
        else:
            self._decoding.append(sequence)
            self._context_tokens += self._memory.reads(sequence)
        return True

    def _retire(self) -> None:
        staying = []
        for sequence in self._decoding:
            if sequence.generated < sequence.max_tokens:
                staying.append(sequence)
            else:
                sequence.done = True
                self._context_tokens -= self._memory.reads(sequence)
                self._memory.release(sequence)
        self._decoding = staying

    def _take_in(self, step: Step, budget: int) -> None:
        """Start prompts that wait, as long as there are budget, places and room in the cache.

        Every decoding sequence may grow at the end of this step, so as many blocks stay free.
        """
        spare = len(self._decoding) * blocks_for(self._width)
        while budget > 0 and self.waiting and self.running < self.limits.max_sequences:
            sequence = self.waiting.first
            if not self.limits.chunked_prefill and step.chunks and self._memory.new_tokens(sequence) > budget:
                break
            chunk_tokens = self.limits.token_budget if self.limits.chunked_prefill else sequence.known_tokens
            if not self._memory.admit(sequence, chunk_tokens=chunk_tokens, spare=spare):
                break
            self._prefilling.append(self.waiting.take())
            step.admitted.append(sequence)
            budget = self._chunk(step, sequence, budget)

    def _chunk(self, step: Step, sequence: Sequence, budget: int) -> int:
        new = sequence.known_tokens - sequence.computed
        if self.limits.chunked_prefill:
            new = min(budget, new)
        if new:
            step.chunks.append((sequence, new))
        return budget - new

    def _make_room_for_growth(self) -> list[Sequence]:
        """Preempt the last by rank until those that need a new block this step can have one."""
        preempted: list[Sequence] = []
        if self.kv.free_blocks >= len(self._decoding) * blocks_for(self._width):
            return preempted
        while sum(self._growth_blocks(sequence) for sequence in self._decoding) > self.kv.free_blocks:
            victim = max(self._prefilling + self._decoding, key=lambda sequence: sequence.rank)
            if victim in self._prefilling:
                self._prefilling.remove(victim)
            else:
                self._decoding.remove(victim)
                self._context_tokens -= self._memory.reads(victim)
            self._memory.release(victim)
            victim.preemptions += 1
            victim.computed = 0
            self.waiting.add(victim)
            preempted.append(victim)
        return preempted

    def _growth_blocks(self, sequence: Sequence) -> int:
        """Blocks that a decoding sequence may need for the tokens of this step."""
        return self._memory.blocks_to_grow(sequence, min(self._width, sequence.max_tokens - sequence.generated))

    def _duration(self, step: Step) -> float:
        pairs = sum(self._memory.pairs(sequence.computed, new) for sequence, new in step.chunks)
        context = self._context_tokens
        if len(step.decoding) < len(self._decoding):
            context = sum(self._memory.reads(sequence) for sequence in step.decoding)
        return self.slowness * self.step_time.seconds(
            prefill_tokens=sum(new for _, new in step.chunks),
            pairs=pairs,
            sequences=len(step.decoding) * self._width,
            context_tokens=context,
            repeated_tokens=min(context, self.kv.repeated_blocks * BLOCK_TOKENS),
        )
