"""Sessions: turns with ids of their own, a history that grows, pauses, and whole sessions on one shard."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.workload.schedule import PlannedRequest, plan_blocks, schedule, schedule_hash
from cliffwatch.workload.spec import Workload, with_changes

CHAT = Workload.model_validate(
    {
        "requests": 3000,
        "arrivals": {"kind": "poisson", "rate": 5},
        "input_tokens": {"kind": "uniform", "min": 20, "max": 200},
        "output_tokens": {"kind": "uniform", "min": 5, "max": 60},
        "models": [{"name": "a"}, {"name": "b"}],
        "tenants": [{"name": "x"}, {"name": "y"}],
        "cache": {"prefix_share": 0.5, "groups": 2},
        "sessions": {"turns": {"kind": "uniform", "min": 1, "max": 7}, "think_time": "2s"},
    }
)


def all_turns(workload: Workload, **shard: int) -> list[PlannedRequest]:
    return list(chain.from_iterable(plan.turns() for plan in schedule(workload, **shard)))


def test_turns_have_consecutive_ids_and_exactly_as_many_as_asked() -> None:
    turns = all_turns(CHAT)
    assert [turn.request_id for turn in turns] == list(range(3000))
    for before, turn in pairwise(turns):
        if turn.turn:
            assert (turn.session, turn.turn) == (before.session, (before.turn or 0) + 1)
            assert (turn.model, turn.tenant, turn.endpoint) == (before.model, before.tenant, "chat")
        else:
            assert turn.session == (before.session or 0) + 1


def test_a_prompt_holds_all_that_was_said_before() -> None:
    for plan in schedule(CHAT):
        said = 0
        for turn in plan.turns():
            assert turn.input_tokens == said + turn.added_tokens
            assert turn.prefix_tokens == said or turn.turn == 0
            said = turn.input_tokens + turn.output_tokens
            assert turn.cache == ("prefix" if turn.turn or turn.prefix_group is not None else "none")


def test_a_turn_is_due_a_pause_after_the_one_before() -> None:
    for plan in schedule(CHAT):
        for before, turn in pairwise(plan.turns()):
            assert turn.pause_ns == 2_000_000_000
            assert turn.intended_ns == before.intended_ns + turn.pause_ns  # were answers there at once
        assert plan.pause_ns == 0


@settings(max_examples=20, deadline=None)
@given(shards=st.integers(1, 9), requests=st.integers(2, 400), seed=st.integers(0, 9), users=st.booleans())
def test_shards_take_whole_sessions_of_the_one_stream(shards: int, requests: int, seed: int, users: bool) -> None:
    arrivals = {"kind": "concurrency", "users": 3} if users else {"kind": "poisson", "rate": 5}
    workload = with_changes(CHAT, requests=requests, seed=seed, arrivals=arrivals)
    parts = [all_turns(workload, shard=shard, shards=shards) for shard in range(shards)]
    sessions = [{turn.session for turn in part} for part in parts]
    assert sum(map(len, sessions)) == len(set().union(*sessions))
    assert sorted(chain(*parts), key=lambda turn: turn.request_id) == all_turns(workload)


@pytest.mark.parametrize("size", [1, 3, 50, 100_000])
def test_blocks_of_any_size_make_the_same_stream(size: int) -> None:
    usual = list(plan_blocks(CHAT))
    blocks = list(plan_blocks(CHAT, size=size))
    for name in ("session", "turn", "added_tokens", "pause_ns", "model", "tenant"):
        columns = [np.concatenate([block.extra[name] for block in some]) for some in (usual, blocks)]
        assert np.array_equal(*columns), name
    for before, after in zip(
        *(zip(*(block.columns() for block in some), strict=True) for some in (usual, blocks)), strict=True
    ):
        assert np.array_equal(np.concatenate(before), np.concatenate(after))


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"think_time": {"kind": "exponential", "mean": 3}}, {"added_tokens", "output_tokens", "turn"}),
        ({"input_tokens": {"kind": "fixed", "value": 9}}, {"pause_ns", "output_tokens", "turn"}),
    ],
)
def test_changing_one_quantity_leaves_the_others(changes: dict[str, object], same: set[str]) -> None:
    assert CHAT.sessions is not None
    changed = with_changes(CHAT, sessions={**CHAT.sessions.model_dump(), **changes})
    before, after = all_turns(CHAT), all_turns(changed)
    names = {"added_tokens", "output_tokens", "turn", "pause_ns"}
    assert {n for n in names if [getattr(t, n) for t in before] == [getattr(t, n) for t in after]} == same
    assert schedule_hash(CHAT) != schedule_hash(changed)


def test_first_turns_are_those_of_the_same_workload_without_sessions() -> None:
    plain = list(schedule(with_changes(CHAT, sessions=None, batch={"sizes": [1]})))
    firsts = list(schedule(CHAT))
    assert len(firsts) > 500
    for name in ("intended_ns", "input_tokens", "output_tokens", "prefix_group", "model", "tenant"):
        assert [getattr(plan, name) for plan in firsts] == [getattr(plan, name) for plan in plain[: len(firsts)]], name


@pytest.mark.parametrize(
    ("think_time", "mean_s"),
    [
        ({"kind": "exponential", "mean": 2}, 2.0),
        ({"kind": "uniform", "min": "1s", "max": "5s"}, 3.0),
        ({"kind": "lognormal", "median": 2, "sigma": 0.5}, 2 * np.exp(0.125)),
    ],
)
def test_pauses_have_their_mean(think_time: dict[str, object], mean_s: float) -> None:
    assert CHAT.sessions is not None
    workload = with_changes(CHAT, requests=20_000, sessions={**CHAT.sessions.model_dump(), "think_time": think_time})
    pauses = np.array([turn.pause_ns / 1e9 for turn in all_turns(workload) if turn.turn])
    error = pauses.std(ddof=1) / np.sqrt(len(pauses))
    assert abs(pauses.mean() - mean_s) < 4 * error  # 1 in 16,000 by chance; the seed is fixed


def test_a_duration_bounds_when_sessions_begin() -> None:
    workload = with_changes(CHAT, requests=None, duration="60s")
    plans = list(schedule(workload))
    assert 0.6 * 300 < len(plans) < 1.4 * 300
    assert all(plan.intended_ns < 60e9 for plan in plans)
