"""Continuous batching, step by step, with times that are easy to add up."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.engine.scheduler import Scheduler
from services.engine.sequence import Sequence
from tests.services.engine.simulated import TIMES, scheduler


def run(engine: Scheduler, limit: int = 10_000) -> list[list[Sequence]]:
    """Steps until idle: the sequences that got a token by each."""
    emitted = []
    while (step := engine.plan()) is not None:
        emitted.append(engine.complete(step))
        assert len(emitted) < limit, "the engine does not come to an end"
    return emitted


def test_step_times_add_up() -> None:
    decode = TIMES.seconds(prefill_tokens=0, pairs=0, sequences=3, context_tokens=100, repeated_tokens=40)
    assert abs(decode - (1.0 + 0.4 + 0.6 + 0.04)) < 1e-9  # a graph of four serves three
    short = TIMES.seconds(prefill_tokens=10, pairs=50, sequences=0, context_tokens=0, repeated_tokens=0)
    assert short == 2.0  # launching takes longer than the arithmetic
    mixed = TIMES.seconds(prefill_tokens=40, pairs=800, sequences=1, context_tokens=10, repeated_tokens=0)
    assert abs(mixed - (4.0 + 0.8 + 0.1 + 0.1)) < 1e-9


def test_one_prompt_prefills_then_decodes() -> None:
    engine = scheduler()
    sequence = Sequence(40, 3)
    engine.add(sequence)
    step = engine.plan()
    assert step is not None
    assert step.chunks == [(sequence, 40)]
    assert abs(step.duration_s - (4.0 + 0.001 * 40 * 20)) < 1e-9
    assert engine.complete(step) == [sequence]
    step = engine.plan()
    assert step is not None
    assert (step.chunks, step.decoding) == ([], [sequence])
    assert abs(step.duration_s - (1.0 + 0.1 + 0.4)) < 1e-9  # 40 tokens of context
    engine.complete(step)
    assert run(engine) == [[sequence]]
    assert (sequence.generated, sequence.done, engine.kv.free_blocks) == (3, True, 100)


def test_a_long_prompt_is_cut_into_chunks_beside_decoding_sequences() -> None:
    engine = scheduler(budget=64)
    first, second = Sequence(10, 5), Sequence(100, 1)
    engine.add(first)
    engine.add(second)
    chunks = []
    while (step := engine.plan()) is not None:
        chunks.append([new for _, new in step.chunks])
        assert len(step.decoding) + sum(chunks[-1]) <= 64
        engine.complete(step)
    assert chunks[:2] == [[10, 54], [46]]


def test_first_come_first_served_within_the_places() -> None:
    engine = scheduler(places=2)
    sequences = [Sequence(5, tokens) for tokens in (2, 4, 2, 2)]
    for sequence in sequences:
        engine.add(sequence)
    firsts: list[Sequence] = []
    for emitted in run(engine):
        assert len(emitted) <= 2
        firsts += [sequence for sequence in emitted if sequence not in firsts]
    assert firsts == sequences


def test_without_chunks_prompts_go_whole_and_decoding_waits() -> None:
    engine = scheduler(budget=64, chunked_prefill=False)
    first, second, third, long = Sequence(10, 5), Sequence(50, 3), Sequence(20, 1), Sequence(100, 1)
    engine.add(first)
    steps = []
    for arrivals in ([], [second, third], [], [long], [], [], [], []):
        for sequence in arrivals:
            engine.add(sequence)
        step = engine.plan()
        if step is None:
            break
        steps.append((step.chunks, list(step.decoding)))
        engine.complete(step)
    assert steps == [
        ([(first, 10)], []),
        ([(second, 50)], []),  # 20 more would be over 64; the first waits
        ([(third, 20)], []),
        ([(long, 100)], []),  # over 64 by itself: a step of its own
        ([], [first, second]),
        ([], [first, second]),
        ([], [first]),
        ([], [first]),
    ]


def test_a_step_of_whole_prompts_reads_no_decoding_context() -> None:
    engine = scheduler(chunked_prefill=False)
    for prompt in (40, 30):
        engine.add(Sequence(prompt, 5))
        step = engine.plan()
        assert step is not None
        engine.complete(step)
    assert abs(step.duration_s - (3.0 + 0.001 * 30 * 15)) < 1e-9


def test_the_most_urgent_waits_least_and_the_least_urgent_gives_up_its_place_in_the_cache() -> None:
    engine = scheduler(places=1, by_priority=True)
    running, late, urgent, same = (Sequence(5, 2, priority=priority) for priority in (0, 7, -1, 7))
    for sequence in (running, late, urgent, same):
        engine.add(sequence)
        if sequence is running:
            step = engine.plan()
            assert step is not None
    engine.complete(step)
    assert list(engine.waiting) == [urgent, late, same]
    assert [emitted for (emitted,) in run(engine)] == [running, urgent, urgent, late, late, same, same]
    engine = scheduler(blocks=4, sharing=False, by_priority=True)
    relaxed, young = Sequence(30, 30, priority=1), Sequence(16, 30, priority=0)
    engine.add(relaxed)
    engine.add(young)
    run(engine)
    assert (relaxed.preemptions, young.preemptions) == (1, 0)


def test_priorities_count_only_where_they_are_asked_for() -> None:
    engine = scheduler()
    relaxed, urgent = Sequence(5, 1, priority=9), Sequence(5, 1, priority=-9)
    engine.add(relaxed)
    engine.add(urgent)
    assert list(engine.waiting) == [relaxed, urgent]


def test_unused_are_the_slots_that_hold_no_token_yet() -> None:
    engine = scheduler(budget=20)
    assert engine.unused_share is None
    engine.add(Sequence(10, 5))
    engine.add(Sequence(30, 5))  # one block and two; 10 and 10 tokens go into the first step
    step = engine.plan()
    assert step is not None
    assert engine.unused_share == 1.0
    engine.complete(step)
    assert engine.unused_share == 28 / 48
    run(engine)
    assert engine.unused_share is None


def test_a_full_cache_makes_prompts_wait() -> None:
    engine = scheduler(blocks=4, sharing=False)
    first, second = Sequence(40, 3), Sequence(40, 3)  # three blocks each
    engine.add(first)
    engine.add(second)
    step = engine.plan()
    assert step is not None
    assert (step.admitted, list(engine.waiting)) == ([first], [second])
    assert engine.kv.usage == 0.75
    engine.complete(step)
    emitted = run(engine)
    assert emitted[:2] == [[first], [first]]
    assert all(sequence.done and not sequence.preemptions for sequence in (first, second))


def test_growth_in_a_full_cache_preempts_the_youngest_which_starts_over() -> None:
    engine = scheduler(blocks=4, sharing=False)
    old, young = Sequence(30, 30), Sequence(16, 30)  # two blocks and one; together they grow to four and three
    engine.add(old)
    engine.add(young)
    emitted = run(engine)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert sum(len(step) for step in emitted) == 60
    assert (old.generated, young.generated, engine.kv.free_blocks) == (30, 30, 4)


def test_a_shared_prefix_is_computed_once() -> None:
    engine = scheduler()
    hashes = (1, 2, 3)
    first, second = Sequence(50, 2, hashes), Sequence(50, 2, hashes)
    engine.add(first)
    run(engine)
    engine.add(second)
    step = engine.plan()
    assert step is not None
    assert (step.chunks, second.cached_tokens) == ([(second, 2)], 48)


def test_a_wholly_cached_prompt_still_computes_its_last_block() -> None:
    engine = scheduler()
    for cached in (0, 32):
        sequence = Sequence(48, 1, (1, 2, 3))
        engine.add(sequence)
        run(engine)
        assert sequence.cached_tokens == cached


def test_cancelled_sequences_leave_no_trace() -> None:
    engine = scheduler(places=2, budget=20)
    decoding, prefilling, waiting = Sequence(5, 50), Sequence(60, 5), Sequence(5, 5)
    for sequence in (decoding, prefilling, waiting):
        engine.add(sequence)
    step = engine.plan()
    assert step is not None
    engine.complete(step)
    step = engine.plan()
    assert step is not None
    for sequence in (decoding, prefilling, waiting, waiting):
        engine.cancel(sequence)
    assert engine.complete(step) == []
    assert (engine.plan(), engine.running, len(engine.waiting), engine.kv.free_blocks) == (None, 0, 0, 100)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 120), st.integers(1, 40), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(8, 64),
    st.integers(10, 40),
    st.sets(st.integers(0, 11)),
    st.fixed_dictionaries({"chunked_prefill": st.booleans(), "by_priority": st.booleans()}),
)
def test_every_sequence_gets_exactly_its_tokens(
    requests: list[tuple[int, int, int]], budget: int, blocks: int, cancelled: set[int], limits: dict[str, bool]
) -> None:
    """Whatever the load: budgets hold, nobody starves, and queue, batch and cache end empty."""
    engine = scheduler(budget=budget, places=4, blocks=blocks, **limits)
    sequences = [
        Sequence(prompt, tokens, tuple(family * 1000 + i for i in range(prompt // 16)), priority=family)
        for prompt, tokens, family in requests
        if prompt + tokens <= blocks * 16
    ]
    for sequence in sequences:
        engine.add(sequence)
    counts = dict.fromkeys(sequences, 0)
    steps = 0
    while (step := engine.plan()) is not None:
        tokens = len(step.decoding) + sum(new for _, new in step.chunks)
        assert tokens > 0
        assert tokens <= budget or (not limits["chunked_prefill"] and len(step.chunks) == 1)
        assert step.duration_s > 0
        assert engine.kv.free_blocks >= 0
        if steps == 3:
            for index in cancelled & set(range(len(sequences))):
                engine.cancel(sequences[index])
        for sequence in engine.complete(step):
            counts[sequence] += 1
        steps += 1
        assert steps < 20_000
    for index, sequence in enumerate(sequences):
        assert sequence.done
        assert counts[sequence] == sequence.generated
        assert sequence.generated == sequence.max_tokens or index in cancelled
    assert (engine.running, len(engine.waiting), engine.kv.free_blocks) == (0, 0, blocks)
    assert engine.kv.repeated_blocks == 0
