"""The engine in simulated time: when prompts arrive, when steps start, and how delays are made up."""

from __future__ import annotations

import pytest

from services.engine.core import Core, IntakeTime
from services.engine.sequence import Sequence
from tests.services.engine.simulated import STEADY, scheduler

INTAKE = IntakeTime(request_s=0.5, token_s=0.01, prompt_s=0.25, wake_s=0.2, hash_token_s=0.02)


def core(*, sharing: bool = False, max_lag_s: float = float("inf"), **limits: int) -> Core:
    return Core(scheduler(STEADY, budget=1000, sharing=sharing, **limits), INTAKE, max_lag_s=max_lag_s)


def first_tokens(engine: Core) -> dict[Sequence, float]:
    """Run to the end; when each sequence had its first token."""
    stamps: dict[Sequence, float] = {}
    while (at_s := engine.next_event_s()) is not None:
        for sequence in engine.advance(at_s).emitted:
            stamps.setdefault(sequence, at_s)
    return stamps


def test_a_lone_prompt_passes_the_frontend_then_a_step() -> None:
    engine, sequence = core(), Sequence(10, 1)
    assert engine.next_event_s() is None
    assert engine.submit([sequence], 100.0) == [pytest.approx(100.85)]  # 0.5 + 10 * 0.01 + 0.25
    assert engine.next_event_s() == pytest.approx(101.05)  # and 0.2 to wake
    assert first_tokens(engine) == {sequence: pytest.approx(102.05)}


def test_prompts_of_a_request_follow_each_other_and_requests_do_too() -> None:
    engine = core()
    batch = [Sequence(10, 1), Sequence(10, 1)]
    assert engine.submit(batch, 0.0) == [pytest.approx(0.95), pytest.approx(1.2)]  # 0.5 + 20 * 0.01 + 0.25 each
    assert engine.submit([Sequence(10, 1)], 0.3) == [pytest.approx(2.05)]  # the frontend is free at 1.2


def test_what_comes_before_a_step_starts_is_in_it_and_what_comes_later_waits_for_the_next() -> None:
    engine = core()
    in_time, late = Sequence(10, 1), Sequence(10, 1)
    engine.submit([in_time], 0.0)  # ready at 0.85; the step runs from 1.05 to 2.05
    engine.submit([late], 0.4)  # ready at 1.7
    assert first_tokens(engine) == {in_time: pytest.approx(2.05), late: pytest.approx(3.05)}


def test_hashing_for_a_prefix_cache_delays_the_step() -> None:
    engine, sequence = core(sharing=True), Sequence(10, 1)
    engine.submit([sequence], 0.0)
    assert first_tokens(engine) == {sequence: pytest.approx(0.85 + 0.2 + 0.2 + 1.0)}


def test_nothing_happens_before_its_time() -> None:
    engine, sequence = core(), Sequence(10, 2)
    engine.submit([sequence], 0.0)
    assert engine.advance(1.0).started is None
    assert engine.advance(1.05 + 1e-9).started is not None
    assert engine.advance(2.0).emitted == []


def test_a_late_caller_catches_up_as_far_as_it_may() -> None:
    punctual, late = core(), core(max_lag_s=0.5)
    for engine in (punctual, late):
        engine.submit([Sequence(10, 3)], 0.0)
        engine.advance(1.1)  # the step's own time was 1.05
        engine.advance(5.0)  # and its end 2.05
    assert punctual.next_event_s() == pytest.approx(3.05)
    assert late.next_event_s() == pytest.approx(5.0 - 0.5 + 1.0)


def test_a_prompt_cancelled_on_its_way_never_enters() -> None:
    engine, sequence = core(), Sequence(10, 3)
    engine.submit([sequence], 0.0)
    engine.scheduler.cancel(sequence)
    assert first_tokens(engine) == {}
    assert engine.next_event_s() is None


def test_a_limit_of_sequences_counts_all_that_have_not_ended() -> None:
    engine = core(max_unfinished=3)
    gone, stays = Sequence(10, 3), Sequence(10, 3)
    engine.submit([gone, stays], 0.0)
    assert (engine.over(1), engine.over(2)) == (None, "max_num_queued_reqs")
    engine.scheduler.cancel(gone)  # still on its way through the frontend
    assert engine.over(2) is None
    first_tokens(engine)
    assert (engine.over(3), engine.over(4)) == (None, "max_num_queued_reqs")


def test_a_limit_of_tokens_counts_prompts_until_their_first_token() -> None:
    engine = core(max_queued_tokens=20)
    engine.submit([Sequence(19, 3)], 0.0)
    assert engine.over(1) is None  # the limit itself is not reached yet
    engine.submit([Sequence(1, 3)], 0.0)
    assert engine.over(1) == "max_num_queued_tokens"
    while engine.over(1) is not None:
        at_s = engine.next_event_s()
        assert at_s is not None
        emitted = engine.advance(at_s).emitted
    assert len(emitted) == 1
