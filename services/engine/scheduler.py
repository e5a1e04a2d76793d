"""Continuous batching, step by step. Pure: no clock, no I/O; a caller says when a step starts and ends.

Each step has a budget of tokens. Sequences that decode get one token each; what is left of the budget goes to prompts,
in parts where they do not fit (chunked prefill), first come first served. A prompt starts when a place, and room for
its whole cache, are free. When the cache is full while sequences grow, the youngest gives up its blocks and starts over
(preemption by recompute).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from services.engine.kv_cache import KvCache, blocks_for
from services.engine.step_time import Seconds, StepTime
from services.engine.tokenizer import BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Limits:
    """What one step, and the engine, may hold."""

    token_budget: int
    max_sequences: int


class Sequence:
    """One prompt and its answer on the way through the engine; `tag` belongs to the caller."""

    __slots__ = (
        "cached_tokens",
        "computed",
        "done",
        "generated",
        "hashes",
        "held",
        "max_tokens",
        "preemptions",
        "private",
        "prompt_tokens",
        "room",
        "tag",
    )

    def __init__(self, prompt_tokens: int, max_tokens: int, hashes: Seq[int] = (), tag: Any = None) -> None:
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.hashes = hashes
        self.tag = tag
        self.computed = 0  # tokens whose keys and values are in the cache
        self.generated = 0
        self.cached_tokens = 0  # of the prompt, found in the prefix cache when it was first scheduled
        self.preemptions = 0
        self.private = 0  # blocks held alone
        self.held: list[int] = []  # shared blocks held
        self.room = 0  # tokens the held blocks can still take
        self.done = False

    @property
    def known_tokens(self) -> int:
        """Tokens that exist so far: the prompt and the answer up to now."""
        return self.prompt_tokens + self.generated


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

    def __init__(self, limits: Limits, kv: KvCache, step_time: StepTime) -> None:
        self.limits = limits
        self.kv = kv
        self.step_time = step_time
        self.waiting: deque[Sequence] = deque()
        self._prefilling: list[Sequence] = []
        self._decoding: list[Sequence] = []
        self._context_tokens = 0  # of the decoding sequences

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._prefilling) + len(self._decoding)

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence. The caller has checked that its prompt fits an empty cache."""
        self.waiting.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Take a sequence out wherever it is and give back its blocks; a finished one is left alone."""
        if sequence.done:
            return
        sequence.done = True
        if sequence in self._decoding:
            self._decoding.remove(sequence)
            self._context_tokens -= sequence.computed
        elif sequence in self._prefilling:
            self._prefilling.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._release(sequence)

    def plan(self) -> Step | None:
        """The next step, or None when there is nothing to do. Changes queue, batch and cache holdings."""
        preempted = self._make_room_for_growth()
        if not self._decoding and not self._prefilling and not self.waiting:
            return None
        step = Step(self._decoding[: self.limits.token_budget], preempted=preempted)
        budget = self.limits.token_budget - len(step.decoding)
        for sequence in self._prefilling:
            budget = self._chunk(step, sequence, budget)
        while budget and self.waiting and not preempted and self.running < self.limits.max_sequences:
            sequence = self.waiting[0]
            if not self._admit(sequence):
                break
            self.waiting.popleft()
            self._prefilling.append(sequence)
            step.admitted.append(sequence)
            budget = self._chunk(step, sequence, budget)
        step.duration_s = self._duration(step)
        return step

    def complete(self, step: Step) -> list[Sequence]:
        """End a planned step; returns the sequences that got a token, prompts first, cancelled ones left out."""
        emitted = [sequence for sequence, new in step.chunks if not sequence.done and self._prefilled(sequence, new)]
        finished = False
        for sequence in step.decoding:
            if sequence.done:
                continue
            sequence.computed += 1
            sequence.generated += 1
            self._context_tokens += 1
            if sequence.room:
                sequence.room -= 1
            else:
                self._grow(sequence)
            finished = finished or sequence.generated >= sequence.max_tokens
            emitted.append(sequence)
        if finished:
            self._retire()
        return emitted

    def repeats(self, step: Step) -> int:
        """How many steps like a planned one follow it for sure, if nothing is added or cancelled: each the same
        sequences with one token more, none of which ends, and room in the cache for all of them.

        What waits goes on waiting: in such a step there was no place for it, and none becomes free.
        """
        if step.chunks or step.preempted or len(step.decoding) < len(self._decoding) or not step.decoding:
            return 0
        count = min(sequence.max_tokens - sequence.generated for sequence in step.decoding) - 1
        room = self.kv.free_blocks - len(step.decoding)
        while count > 0 and sum(blocks_for(max(0, count - each.room)) for each in step.decoding) > room:
            count //= 2
        return max(count, 0)

    def durations(self, step: Step, count: int) -> Seconds:
        """Of the `count` steps after a planned one that are like it (`repeats`)."""
        many = len(step.decoding)
        context = self._context_tokens + many * np.arange(1, count + 1, dtype=np.int64)
        repeated = np.minimum(context, self.kv.repeated_blocks * BLOCK_TOKENS)
        return self.step_time.decode_seconds(many, context, repeated)

    def repeat(self, step: Step, count: int) -> None:
        """Complete a planned step and the next `count - 1` like it at once."""
        for sequence in step.decoding:
            sequence.computed += count
            sequence.generated += count
            blocks = blocks_for(max(0, count - sequence.room))
            self.kv.take(blocks)
            sequence.private += blocks
            sequence.room += blocks * BLOCK_TOKENS - count
        self._context_tokens += count * len(step.decoding)

    def _prefilled(self, sequence: Sequence, new: int) -> bool:
        """Account for a computed chunk; whether it completed the prompt and so brought a token."""
        sequence.computed += new
        if sequence.computed < sequence.known_tokens:
            return False
        self._prefilling.remove(sequence)
        full = sequence.hashes[len(sequence.held) : sequence.computed // BLOCK_TOKENS]
        fresh = self.kv.share(full)
        sequence.held += fresh
        sequence.private -= len(fresh)
        sequence.generated += 1
        if sequence.generated >= sequence.max_tokens:
            sequence.done = True
            self._release(sequence)
        else:
            self._decoding.append(sequence)
            self._context_tokens += sequence.computed
        return True

    def _retire(self) -> None:
        staying = []
        for sequence in self._decoding:
            if sequence.generated < sequence.max_tokens:
                staying.append(sequence)
            else:
                sequence.done = True
                self._context_tokens -= sequence.computed
                self._release(sequence)
        self._decoding = staying

    def _chunk(self, step: Step, sequence: Sequence, budget: int) -> int:
        new = min(budget, sequence.known_tokens - sequence.computed)
        if new:
            step.chunks.append((sequence, new))
        return budget - new

    def _admit(self, sequence: Sequence) -> bool:
        """Take blocks for a whole sequence as far as it is known; False when there is no room.

        Every decoding sequence may need one more block at the end of this step, so that many stay free.
        """
        hits = min(self.kv.match(sequence.hashes), (sequence.known_tokens - 1) // BLOCK_TOKENS)
        shared = sequence.hashes[:hits]
        needed = blocks_for(sequence.known_tokens) - hits
        if needed + self.kv.idle_among(shared) + len(self._decoding) > self.kv.free_blocks:
            return False
        self.kv.hold(shared)
        self.kv.take(needed)
        sequence.held = list(shared)
        sequence.private = needed
        sequence.computed = hits * BLOCK_TOKENS
        sequence.room = (hits + needed) * BLOCK_TOKENS - sequence.known_tokens
        if not sequence.preemptions:
            sequence.cached_tokens = sequence.computed
        return True

    def _grow(self, sequence: Sequence) -> None:
        self.kv.take(1)
        sequence.private += 1
        sequence.room = BLOCK_TOKENS - 1

    def _make_room_for_growth(self) -> list[Sequence]:
        """Preempt the youngest sequences until those that need a new block this step can have one."""
        preempted: list[Sequence] = []
        if self.kv.free_blocks >= len(self._decoding):
            return preempted
        while sum(1 for sequence in self._decoding if not sequence.room) > self.kv.free_blocks:
            victim = (self._prefilling or self._decoding)[-1]
            if victim in self._prefilling:
                self._prefilling.remove(victim)
            else:
                self._decoding.remove(victim)
                self._context_tokens -= victim.computed
            self._release(victim)
            victim.preemptions += 1
            victim.computed = 0
            self.waiting.appendleft(victim)
            preempted.append(victim)
        return preempted

    def _release(self, sequence: Sequence) -> None:
        self.kv.release(sequence.private, sequence.held)
        sequence.private = 0
        sequence.held = []

    def _duration(self, step: Step) -> float:
        pairs = sum(new * (sequence.computed + new / 2) for sequence, new in step.chunks)
        return self.step_time.seconds(
            prefill_tokens=sum(new for _, new in step.chunks),
            pairs=pairs,
            sequences=len(step.decoding),
            context_tokens=self._context_tokens,
            repeated_tokens=min(self._context_tokens, self.kv.repeated_blocks * BLOCK_TOKENS),
        )
