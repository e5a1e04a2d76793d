"""What sequences hold of the key-value cache: admission, growth, and giving back."""

from __future__ import annotations

from services.engine.kv_cache import KvCache, blocks_for
from services.engine.sequence import Sequence
from services.engine.tokenizer import BLOCK_TOKENS


class Memory:
    """The cache as sequences take it: whole blocks, reserved before tokens fill them."""

    def __init__(self, kv: KvCache) -> None:
        self.kv = kv

    def admit(self, sequence: Sequence, *, spare: int) -> bool:
        """Take blocks for a whole sequence as far as it is known; False when fewer than `spare` would stay free."""
        hits = self._hits(sequence)
        shared = sequence.hashes[:hits]
        needed = blocks_for(sequence.known_tokens) - hits
        if needed + self.kv.idle_among(shared) + spare > self.kv.free_blocks:
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

    def new_tokens(self, sequence: Sequence) -> int:
        """Tokens that a sequence which waits would have to compute now."""
        return sequence.known_tokens - self._hits(sequence) * BLOCK_TOKENS

    def _hits(self, sequence: Sequence) -> int:
        return min(self.kv.match(sequence.hashes), (sequence.known_tokens - 1) // BLOCK_TOKENS)

    def share(self, sequence: Sequence) -> None:
        """Its prompt is computed: others may use its full blocks."""
        full = sequence.hashes[len(sequence.held) : sequence.computed // BLOCK_TOKENS]
        fresh = self.kv.share(full)
        sequence.held += fresh
        sequence.private -= len(fresh)

    def grow(self, sequence: Sequence, tokens: int) -> None:
        """Room for `tokens` more; the caller has seen to free blocks."""
        blocks = self.blocks_to_grow(sequence, tokens)
        if blocks:
            self.kv.take(blocks)
            sequence.private += blocks
        sequence.room += blocks * BLOCK_TOKENS - tokens

    @staticmethod
    def blocks_to_grow(sequence: Sequence, tokens: int) -> int:
        """Blocks that a sequence needs for `tokens` more."""
        return blocks_for(max(0, tokens - sequence.room))

    @staticmethod
    def unused_slots(sequence: Sequence) -> int:
        """Slots for tokens that a sequence holds and has no token in yet."""
        return (len(sequence.held) + sequence.private) * BLOCK_TOKENS - sequence.computed

    def release(self, sequence: Sequence) -> None:
        """Give everything back."""
        self.kv.release(sequence.private, sequence.held)
        sequence.private = 0
        sequence.held = []
