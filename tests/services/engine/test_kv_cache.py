"""Block accounting: nothing is lost or held twice, whatever the order of holds, shares and releases."""

from __future__ import annotations

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


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), max_size=60))
def test_all_blocks_come_back(moves: list[tuple[int, int, bool]]) -> None:
    """Prompts of one of four families come and go at random; capacity is never exceeded, and all returns."""
    kv = KvCache(12)
    alive: list[tuple[int, list[int]]] = []
    for blocks, family, leave in moves:
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
