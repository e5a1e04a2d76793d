"""What sequences hold and read with a window: bounded whatever their length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.engine.kv_cache import KvCache
from services.engine.memory import Memory, Window
from services.engine.sequence import Sequence
from tests.services.engine.simulated import TIMES, scheduler


def test_a_window_bounds_what_a_decoding_sequence_holds_and_reads() -> None:
    engine = scheduler(budget=32, blocks=20, sharing=False, window=Window(48))
    sequence = Sequence(200, 100)
    engine.add(sequence)
    held = []
    step = engine.plan()
    while step is not None:
        held.append(engine.kv.used_blocks)
        engine.complete(step)
        last, step = step, engine.plan()
    # Prefill: 48 tokens of window and 32 of a chunk are 5 blocks, one more for a window that begins within a block.
    assert held[:7] == [6] * 7  # 200 tokens at 32 a step
    assert set(held[7:]) == {4}  # 48 tokens are 3 blocks, and one more
    assert (len(held), sequence.generated, engine.kv.used_blocks) == (7 + 99, 100, 0)
    assert abs(last.duration_s - (1.0 + 0.1 + 0.48)) < 1e-9  # reads 48 tokens, not 298


def test_sinks_are_held_and_read_besides_the_window() -> None:
    engine = scheduler(budget=300, blocks=20, sharing=False, window=Window(32, sinks=4))
    engine.add(Sequence(160, 10))
    step = engine.plan()
    assert step is not None
    engine.complete(step)
    assert engine.kv.used_blocks == 1 + 2 + 1
    step = engine.plan()
    assert step is not None
    assert abs(step.duration_s - (1.0 + 0.1 + 0.36)) < 1e-9
    assert engine.unused_share == 1 - 36 / 64


def test_a_prompt_attends_to_its_window_only() -> None:
    memory = Memory(KvCache(10), Window(8, sinks=2))
    assert memory.pairs(0, 10) == 50.0  # within reach it is half of a square
    assert memory.pairs(0, 14) == 50.0 + 4 * 10
    assert memory.pairs(6, 8) == 4 * 8 + 4 * 10
    assert memory.pairs(20, 5) == 50.0


def test_a_window_lets_more_sequences_in_than_their_whole_caches_would() -> None:
    tall = {"blocks": 20, "budget": 16, "sharing": False}
    for window, running in ((None, 1), (Window(16), 6)):
        engine = scheduler(TIMES, window=window, **tall)
        for _ in range(6):
            engine.add(Sequence(160, 100))
        most = 0
        while (step := engine.plan()) is not None:
            engine.complete(step)
            most = max(most, engine.running)
        assert most == running, window


@given(st.integers(1, 200), st.integers(0, 40), st.lists(st.integers(1, 30), min_size=1, max_size=12))
def test_growth_takes_no_more_than_the_window_and_never_lacks_room(tokens: int, sinks: int, steps: list[int]) -> None:
    window = Window(tokens, sinks)
    kv = KvCache(100)
    memory = Memory(kv, window)
    sequence = Sequence(40, 1000)
    assert memory.admit(sequence, chunk_tokens=40, spare=0)
    sequence.computed = 40
    memory.prefilled(sequence)
    for new in steps:
        memory.grow(sequence, new)
        sequence.computed += new
        assert memory.reads(sequence) <= sequence.private * 16
        assert sequence.private <= window.blocks(0)
        assert kv.used_blocks == sequence.private
    memory.release(sequence)
    assert kv.used_blocks == 0
