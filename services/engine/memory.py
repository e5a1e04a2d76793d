"""What sequences hold of the key-value cache: admission, growth, giving back, and what attention reads of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from services.engine.kv_cache import KvCache, blocks_for
from services.engine.sequence import Sequence
from services.engine.tokenizer import BLOCK_TOKENS


@dataclass(frozen=True, slots=True)
class Window:
    """Attention to the last `tokens` tokens, and to the first `sinks` ones (streaming attention)."""

    tokens: int
    sinks: int = 0

    @property
    def reach_tokens(self) -> int:
        """Tokens that one token attends to at most."""
        return self.tokens + self.sinks

    def blocks(self, chunk_tokens: int) -> int:
        """Blocks that hold the window while `chunk_tokens` more are computed; it need not begin with a block."""
        return blocks_for(self.sinks) + blocks_for(self.tokens + chunk_tokens) + 1


class Memory:
    """The cache as sequences take it: whole blocks, reserved before tokens fill them.

    Args:
        window: what attention looks back at, where that is not everything; blocks before it are given back.
    """

    def __init__(self, kv: KvCache, window: Window | None = None) -> None:
        self.kv = kv
        self.window = window
        self.reach_tokens = window.reach_tokens if window else sys.maxsize
        self._most_blocks = window.blocks(0) if window else sys.maxsize

    def admit(self, sequence: Sequence, *, chunk_tokens: int, spare: int) -> bool:
        """Take blocks for a whole sequence as far as it is known; False when fewer than `spare` would stay free.

        With a window, that is for the window and the most tokens that are computed at once.
        """
        hits = self._hits(sequence)
        shared = sequence.hashes[:hits]
        needed = blocks_for(sequence.known_tokens) - hits
        if self.window:
            needed = min(needed, self.window.blocks(chunk_tokens))
        if needed + self.kv.idle_among(shared) + spare > self.kv.free_blocks:
            return False
        self.kv.hold(shared)
        self.kv.take(needed)
        sequence.held = list(shared)
        sequence.private = needed
        sequence.computed = hits * BLOCK_TOKENS
        sequence.room = -sequence.known_tokens % BLOCK_TOKENS
        if not sequence.preemptions:
            sequence.cached_tokens = sequence.computed
        return True

    def new_tokens(self, sequence: Sequence) -> int:
        """Tokens that a sequence which waits would have to compute now."""
        return sequence.known_tokens - self._hits(sequence) * BLOCK_TOKENS

    def prefilled(self, sequence: Sequence) -> None:
        """Its prompt is computed: others may use its full blocks, and what the window leaves behind is free."""
        full = sequence.hashes[len(sequence.held) : sequence.computed // BLOCK_TOKENS]
        fresh = self.kv.share(full)
        sequence.held += fresh
        sequence.private -= len(fresh)
        surplus = sequence.private - self._most_blocks
        if surplus > 0:
            self.kv.release(surplus, ())
            sequence.private -= surplus

    def grow(self, sequence: Sequence, tokens: int) -> None:
        """Room for `tokens` more; the caller has seen to free blocks."""
        blocks = self.blocks_to_grow(sequence, tokens)
        if blocks:
            self.kv.take(blocks)
            sequence.private += blocks
        sequence.room = (sequence.room - tokens) % BLOCK_TOKENS

    def blocks_to_grow(self, sequence: Sequence, tokens: int) -> int:
        """Blocks that a sequence takes for `tokens` more; a full window gives back as many as it takes."""
        blocks = blocks_for(max(0, tokens - sequence.room))
        return min(blocks, self._most_blocks - sequence.private)

    def reads(self, sequence: Sequence) -> int:
        """Tokens whose keys and values its next token reads."""
        return min(sequence.computed, self.reach_tokens)

    def pairs(self, computed: int, new: int) -> float:
        """For `new` tokens after `computed` ones, the sum over them of the tokens that each attends to."""
        near = min(new, max(0, self.reach_tokens - computed))
        return near * (computed + near / 2) + (new - near) * (self.reach_tokens if near < new else 0)

    def unused_slots(self, sequence: Sequence) -> int:
        """Slots for tokens that a sequence holds and has no token in, or none that is still read."""
        return (len(sequence.held) + sequence.private) * BLOCK_TOKENS - self.reads(sequence)

    def release(self, sequence: Sequence) -> None:
        """Give everything back."""
        self.kv.release(sequence.private, sequence.held)
        sequence.private = 0
        sequence.held = []

    def _hits(self, sequence: Sequence) -> int:
        return min(self.kv.match(sequence.hashes), (sequence.known_tokens - 1) // BLOCK_TOKENS)
