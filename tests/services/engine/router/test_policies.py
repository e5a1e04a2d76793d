"""Choices among replicas: turns, load, and prompts that keep their replica."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from services.engine.router.policies import LOAD_BOUND, LeastLoaded, PrefixAffine, Replica, RoundRobin


def replicas(*loads: int) -> list[Replica]:
    return [Replica(f"127.0.0.1:{8000 + number}", in_flight=load) for number, load in enumerate(loads)]


def test_round_robin_gives_each_its_turn() -> None:
    policy, three = RoundRobin(), replicas(0, 0, 0)
    assert [policy(three, b"x").address[-1] for _ in range(7)] == list("0120120")


def test_least_loaded_takes_the_idlest_and_equals_in_turn() -> None:
    policy = LeastLoaded()
    assert policy(replicas(3, 1, 2), b"").address.endswith("1")
    equals = replicas(5, 1, 1)
    assert Counter(policy(equals, b"").address[-1] for _ in range(10)) == {"1": 5, "2": 5}


def test_a_prompt_keeps_its_replica_and_prompts_spread() -> None:
    policy, four = PrefixAffine(), replicas(0, 0, 0, 0)
    prompts = [b"prompt %d" % number for number in range(1000)]
    homes = {prompt: policy(four, prompt).address for prompt in prompts}
    assert {prompt: policy(four, prompt).address for prompt in prompts} == homes
    # 1000 of 4: 250 each, standard deviation 13.7; six of these are beyond any chance worth naming.
    assert all(abs(n - 250) < 83 for n in Counter(homes.values()).values())


def test_only_the_prompts_of_a_lost_replica_move() -> None:
    policy, four = PrefixAffine(), replicas(0, 0, 0, 0)
    prompts = [b"prompt %d" % number for number in range(300)]
    before = {prompt: policy(four, prompt).address for prompt in prompts}
    lost = four.pop(2).address
    after = {prompt: policy(four, prompt).address for prompt in prompts}
    assert all(after[prompt] == before[prompt] for prompt in prompts if before[prompt] != lost)
    assert lost not in after.values()


@settings(max_examples=50)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.binary(min_size=1, max_size=8))
def test_affinity_gives_way_to_load(loads: list[int], prefix: bytes) -> None:
    chosen = PrefixAffine()(replicas(*loads), prefix)
    share = (sum(loads) + 1) / len(loads)
    assert chosen.in_flight < LOAD_BOUND * share + 1


def test_without_a_prompt_affinity_is_least_loaded() -> None:
    assert PrefixAffine()(replicas(4, 0, 9), b"").address.endswith("1")
