"""Block accounting: nothing is lost or held twice, whatever the order of holds, shares and releases."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from services.engine.kv_cache import KvCache, blocks_for


def test_blocks_for() -> None:
    assert [blocks_for(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_a_released_prefix_is_found_again_until_its_room_is_needed() -> None:
    kv = KvCache(10)
    kv.take(4)
    assert kv.share([1, 2, 3]) == [1, 2, 3]
    assert (kv.free_blocks, kv.usage) == (6, 0.4)
    kv.release(1, [1, 2, 3])
    assert (kv.free_blocks, kv.usage) == (10, 0.0)  # idle blocks count as free
    assert kv.match([1, 2, 3, 4]) == 3
    kv.take(8)  # two blocks of ten are left: of the three idle ones the prompt's tail goes first
    assert kv.match([1, 2, 3, 4]) == 2
    kv.take(2)
    assert kv.match([1, 2, 3, 4]) == 0


def test_the_least_recently_used_prompt_goes_first() -> None:
    kv = KvCache(4)
    for keys in ([1, 2], [3, 4]):
        kv.take(2)
        kv.share(keys)
        kv.release(0, keys)
    kv.hold([1, 2])
    kv.release(0, [1, 2])
    kv.take(2)
    assert (kv.match([1, 2]), kv.match([3, 4])) == (2, 0)


def used(kv: KvCache, keys: list[int], times: int) -> None:
    """A prompt of these blocks is computed once and found again until `times` sequences have held it."""
    kv.take(len(keys))
    kv.share(keys)
    kv.release(0, keys)
    for _ in range(times - 1):
        kv.hold(keys)
        kv.release(0, keys)


def found(kv: KvCache, *prompts: list[int]) -> list[int]:
    return [kv.match(keys) for keys in prompts]


def test_the_least_frequently_used_prompt_goes_first_and_then_the_oldest() -> None:
    kv = KvCache(6, eviction="lfu")
    often, old, new = [1, 2], [3, 4], [5, 6]
    for keys, times in ((often, 3), (old, 2), (new, 2)):
        used(kv, keys, times)
    assert found(kv, often, old, new) == [2, 2, 2]
    kv.take(2)
    assert found(kv, often, old, new) == [2, 0, 2]  # by age alone, `often` would have gone
    kv.take(2)
    assert found(kv, often, old, new) == [2, 0, 0]


def test_eviction_can_change_while_blocks_are_idle() -> None:
    kv = KvCache(6)
    often, seldom = [1, 2, 3], [4, 5, 6]
    used(kv, often, 2)
    used(kv, seldom, 1)
    kv.evict_by("lfu")
    kv.take(1)
    assert found(kv, often, seldom) == [3, 2]  # uses from before the change count
    kv.evict_by("lru")
    kv.take(1)
    assert found(kv, often, seldom) == [3, 1]  # what went into the queue by uses keeps its order there
    kv.take(4)
    assert (found(kv, often, seldom), kv.free_blocks) == ([0, 0], 0)


def test_repeated_blocks_count_holders_beyond_the_first() -> None:
    kv = KvCache(10)
    kv.take(2)
    kv.share([1, 2])
    kv.hold([1, 2])
    kv.hold([1])
    assert kv.repeated_blocks == 3
    for held in ([1, 2], [1], [1, 2]):
        kv.release(0, held)
    assert kv.repeated_blocks == 0


def test_without_sharing_nothing_is_found() -> None:
    kv = KvCache(4, sharing=False)
    kv.take(2)
    assert kv.share([1, 2]) == []
    kv.release(2, [])
    assert (kv.match([1, 2]), kv.free_blocks) == (0, 4)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), max_size=60), st.booleans())
def test_all_blocks_come_back(moves: list[tuple[int, int, bool]], switching: bool) -> None:
    """Prompts of one of four families come and go at random; capacity is never exceeded, and all returns."""
    kv = KvCache(12)
    kinds = itertools.cycle(["lfu", "lru"])
    alive: list[tuple[int, list[int]]] = []
    for blocks, family, leave in moves:
        if switching:
            kv.evict_by(next(kinds))
        if leave and alive:
            kv.release(*alive.pop(0))
            continue
        hashes = [family * 100 + i for i in range(blocks)]
        hits = hashes[: kv.match(hashes)]
        private = blocks + 1 - len(hits)
        if private + kv.idle_among(hits) > kv.free_blocks:
            continue
        kv.hold(hits)
        kv.take(private)
        fresh = kv.share(hashes[len(hits) :])
        alive.append((private - len(fresh), hits + fresh))
        assert 0 <= kv.free_blocks <= kv.capacity_blocks
    for private, held in alive:
        kv.release(private, held)
    assert (kv.free_blocks, kv.repeated_blocks) == (12, 0)
