"""Key-value cache accounting in blocks: what is held, what a shared prefix saves, what can be taken back.

Blocks are counted, not numbered: a stand-in has no memory to address. Full blocks of a prompt are shared through
their hashes; a shared block that nobody holds stays usable until its room is needed (`eviction` says which goes first).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.engine.eviction import EVICTIONS, EvictionName
from services.engine.tokenizer import BLOCK_TOKENS


def blocks_for(tokens: int) -> int:
    """Blocks that `tokens` tokens fill, the last one perhaps in part."""
    return -(-tokens // BLOCK_TOKENS)


class KvCache:
    """Counts of private and shared blocks against one capacity.

    Args:
        capacity_blocks: blocks in all.
        sharing: whether prompts share equal prefixes (a prefix cache).
        eviction: which idle block goes first.
    """

    def __init__(self, capacity_blocks: int, *, sharing: bool = True, eviction: EvictionName = "lru") -> None:
        self.capacity_blocks = capacity_blocks
        self.sharing = sharing
        self.repeated_blocks = 0  # holds on shared blocks beyond the first on each
        self.evicted_blocks = 0  # so far
        self._private = 0
        self._shared: dict[int, int] = {}  # hash -> sequences holding it
        self._uses: dict[int, int] = {}  # hash of a held or idle block -> sequences that have held it so far
        self.eviction = eviction
        self._idle = EVICTIONS[eviction]()

    @property
    def free_blocks(self) -> int:
        """Blocks that can be taken now, idle shared ones included."""
        return self.capacity_blocks - self._private - len(self._shared)

    @property
    def used_blocks(self) -> int:
        """Blocks that live sequences hold."""
        return self.capacity_blocks - self.free_blocks

    @property
    def idle_blocks(self) -> int:
        """Cached blocks that nobody holds."""
        return len(self._idle)

    @property
    def usage(self) -> float:
        """Share of the capacity that live sequences hold, 0 to 1 (as engines report it: idle blocks count as free)."""
        return self.used_blocks / self.capacity_blocks

    def evict_by(self, eviction: EvictionName) -> None:
        """From now on other idle blocks go first; how often each was used is known from before."""
        if eviction == self.eviction:
            return
        known, self._idle, self.eviction = self._idle, EVICTIONS[eviction](), eviction
        for key in known:
            self._idle.add(key, self._uses[key])

    def match(self, hashes: Sequence[int]) -> int:
        """How many leading blocks are in the cache, held or idle."""
        if not self.sharing:
            return 0
        for index, key in enumerate(hashes):
            if key not in self._shared and key not in self._idle:
                return index
        return len(hashes)

    def idle_among(self, hashes: Sequence[int]) -> int:
        """How many of `hashes` nobody holds now: holding them takes from the free blocks."""
        return sum(1 for key in hashes if key not in self._shared)

    def hold(self, hashes: Sequence[int]) -> None:
        """Hold shared blocks found by `match`."""
        for key in hashes:
            self._idle.discard(key)
            self._uses[key] += 1
            holders = self._shared.get(key, 0)
            self._shared[key] = holders + 1
            if holders:
                self.repeated_blocks += 1

    def take(self, blocks: int) -> None:
        """Take private blocks; the caller has checked `free_blocks`. Idle shared blocks make room."""
        self._private += blocks
        while len(self._idle) > self.free_blocks:
            del self._uses[self._idle.evict()]
            self.evicted_blocks += 1

    def share(self, hashes: Sequence[int]) -> list[int]:
        """Turn computed private blocks into shared ones; returns the hashes the caller now holds.

        A block that another sequence shared first stays private here, as engines keep such duplicates.
        """
        if not self.sharing:
            return []
        fresh = [key for key in hashes if key not in self._shared and key not in self._idle]
        for key in fresh:
            self._shared[key] = self._uses[key] = 1
        self._private -= len(fresh)
        return fresh

    def release(self, private: int, held: Sequence[int]) -> None:
        """Give back private blocks, and holds on shared ones; a prompt's tail becomes evictable before its head."""
        self._private -= private
        for key in reversed(held):
            holders = self._shared[key] - 1
            if holders:
                self._shared[key] = holders
                self.repeated_blocks -= 1
            else:
                del self._shared[key]
                self._idle.add(key, self._uses[key])
