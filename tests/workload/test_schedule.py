"""The schedule: one stream, whatever its blocks and shards; each quantity with a generator of its own."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.records.schema import Phase
from cliffwatch.workload.plan import PHASES
from cliffwatch.workload.schedule import (
    PlannedRequest,
    phase_at,
    plan_blocks,
    schedule,
    schedule_hash,
    split_users,
)
from cliffwatch.workload.spec import Workload, load_workload, with_changes
from tests.workload.statistics import CHI_SQUARE, Z, binomial_z, chi_square

RATES = st.floats(0.5, 5000)
WORKLOADS = st.builds(
    lambda seed, requests, duration, arrivals, lengths, share, warmup: Workload.model_validate(
        {
            "seed": seed,
            "requests": requests,
            "duration": duration,
            "arrivals": arrivals,
            "input_tokens": lengths,
            "cache": {"prefix_share": share, "groups": 3},
            "warmup": {"duration": warmup},
            "cold_start": {"requests": 1},
        }
    ),
    seed=st.integers(0, 2**63 - 1),
    requests=st.integers(2, 9000),
    duration=st.none() | st.floats(1, 100),
    arrivals=st.fixed_dictionaries({"kind": st.sampled_from(["poisson", "constant"]), "rate": RATES})
    | st.fixed_dictionaries({"kind": st.just("gamma"), "rate": RATES, "burstiness": st.floats(0.01, 100)})
    | st.fixed_dictionaries(
        {
            "kind": st.just("ramp"),
            "shape": st.sampled_from(["linear", "geometric"]),
            "start_rate": RATES,
            "end_rate": RATES,
            "over": st.floats(1, 100),
            "burstiness": st.none() | st.floats(0.01, 100),
        }
    )
    | st.fixed_dictionaries({"kind": st.just("diurnal"), "low": st.just(0.1), "high": RATES, "period": st.just(10)})
    | st.fixed_dictionaries(
        {
            "kind": st.just("bursts"),
            "on": st.just(1),
            "off": st.floats(0.1, 9),
            "on_rate": RATES,
            "off_rate": st.just(0),
        }
    )
    | st.fixed_dictionaries({"kind": st.just("concurrency"), "users": st.integers(1, 50)}),
    lengths=st.sampled_from(
        [
            {"kind": "loguniform", "min": 1024, "max": 32768},
            {"kind": "fixed", "value": 5},
            {"kind": "uniform", "min": 1, "max": 99},
            {"kind": "empirical", "values": [100, 4000], "weights": [1, 2]},
        ]
    ),
    share=st.floats(0, 1),
    warmup=st.floats(0, 0.9),
)


@settings(max_examples=30, deadline=None)
@given(workload=WORKLOADS, shards=st.integers(1, 9))
def test_merged_shards_are_the_one_stream(workload: Workload, shards: int) -> None:
    one = list(schedule(workload))
    parts = [list(schedule(workload, shard=shard, shards=shards)) for shard in range(shards)]
    assert sorted(chain(*parts), key=lambda plan: plan.request_id) == one
    assert all(plan.request_id % shards == shard for shard, part in enumerate(parts) for plan in part)
    assert [plan.request_id for plan in one] == list(range(len(one)))


@settings(max_examples=30, deadline=None)
@given(workload=WORKLOADS)
def test_every_plan_is_within_its_bounds(workload: Workload) -> None:
    end_ns = (workload.duration or 1e9) * 1e9
    low, high = workload.input_tokens.bounds
    last = 0
    for plan in schedule(workload):
        assert last <= plan.intended_ns
        assert not workload.open_loop or plan.intended_ns < end_ns + 1
        last = plan.intended_ns
        assert low <= plan.input_tokens <= high
        assert 8 <= plan.output_tokens <= 512
        assert plan.batch in workload.batch.sizes
        assert plan.batch <= max(1, 16384 / plan.input_tokens)
        assert plan.endpoint == ("chat" if plan.batch == 1 else "completions")
        assert (plan.cache == "none") == (plan.prefix_group is None)
        assert plan.prefix_tokens == (0 if plan.prefix_group is None else int(plan.input_tokens * 0.8))
        assert plan.prefix_group is None or 0 <= plan.prefix_group < 3
        assert plan.phase == phase_at(workload, plan.request_id, plan.intended_ns)


@settings(max_examples=20, deadline=None)
@given(workload=WORKLOADS, size=st.integers(1, 5000))
def test_blocks_of_any_size_make_the_same_stream(workload: Workload, size: int) -> None:
    def rows(size: int) -> np.ndarray:
        blocks = [np.stack(block.columns()) for block in plan_blocks(workload, size=size)]
        return np.concatenate([np.zeros((8, 0)), *blocks], axis=1)  # a load may end before its first request

    assert (rows(max(size, 50)) == rows(4096)).all()


def test_a_schedule_is_lazy_and_may_be_endless() -> None:
    endless = with_changes(load_workload("closed"), duration="30d")
    assert [plan.request_id for plan in islice(schedule(endless, shard=1, shards=2), 3)] == [1, 3, 5]


def test_the_numbers_themselves_are_pinned() -> None:
    """A change here is a change of everyone's traffic: earlier runs could not be repeated."""
    workload = Workload.model_validate({"seed": 7, "requests": 1000, "arrivals": {"kind": "poisson", "rate": 10}})
    assert list(islice(schedule(workload), 2)) == GOLDEN


@pytest.mark.parametrize(
    ("arrivals", "times"),
    [
        ({"kind": "gamma", "rate": 10, "burstiness": 0.25}, [703471412, 704795394, 825804595]),
        ({"kind": "ramp", "end_rate": 10, "over": 20}, [779346465, 2290615061, 2626828133]),
        ({"kind": "diurnal", "low": 1, "high": 9, "period": 60}, [151819645, 1295835962, 1689834168]),
    ],
)
def test_the_times_of_other_arrivals_are_pinned_too(arrivals: dict[str, object], times: list[int]) -> None:
    workload = Workload.model_validate({"seed": 7, "requests": 1000, "arrivals": arrivals})
    assert [plan.intended_ns for plan in islice(schedule(workload), 3)] == times


def test_the_hash_is_the_same_in_another_process() -> None:
    code = "from cliffwatch.workload.schedule import *; from cliffwatch.workload.spec import *; "
    code += "print(schedule_hash(load_workload('longtail')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert told.stdout.strip() == schedule_hash(load_workload("longtail"))


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 43},
        {"duration": "61s"},
        {"arrivals": {"kind": "poisson", "rate": 4.0001}},
        {"arrivals": {"kind": "constant", "rate": 4}},
        {"input_tokens": {"kind": "loguniform", "min": 1024, "max": 32767}},
        {"cache": {"prefix_share": 0.25, "prefix_fraction": 0.8, "groups": 9}},
        {"max_lag": "11s"},
    ],
)
def test_the_hash_tells_every_change(changes: dict[str, object]) -> None:
    workload = load_workload("longtail")
    assert schedule_hash(with_changes(workload, **changes)) != schedule_hash(workload)


@given(first=st.integers(0, 2**63 - 1), second=st.integers(0, 2**63 - 1))
@settings(max_examples=20, deadline=None)
def test_two_seeds_have_two_hashes(first: int, second: int) -> None:
    one, two = (schedule_hash(with_changes(load_workload("smoke"), seed=seed)) for seed in (first, second))
    assert (one == two) == (first == second)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"arrivals": {"kind": "constant", "rate": 4}}, {"intended_ns"}),
        ({"output_tokens": {"kind": "fixed", "value": 9}}, {"output_tokens"}),
        ({"batch": {"sizes": [1]}}, {"batch"}),
        ({"cache": {"prefix_share": 1, "prefix_fraction": 0.8}}, {"prefix_group", "prefix_tokens"}),
        ({"input_tokens": {"kind": "fixed", "value": 999}}, {"input_tokens", "batch", "prefix_tokens"}),
        ({"models": [{"name": "a"}, {"name": "b", "weight": 3}]}, {"model"}),
        ({"tenants": [{"name": "a"}, {"name": "b"}]}, {"tenant"}),
        ({"priority": [{"value": 0}, {"value": -5}]}, {"priority"}),
    ],
)
def test_changing_one_quantity_leaves_the_others(changes: dict[str, object], changed: set[str]) -> None:
    workload = with_changes(load_workload("longtail"), duration=None, requests=2000, warmup={})
    names = ["intended_ns", "input_tokens", "output_tokens", "batch", "prefix_group", "prefix_tokens"]
    names += ["model", "tenant", "priority"]

    def columns(workload: Workload) -> dict[str, list[object]]:
        return {name: [getattr(plan, name) for plan in schedule(workload)] for name in names}

    before, after = columns(workload), columns(with_changes(workload, **changes))
    assert {name for name in names if before[name] != after[name]} == changed


def test_shared_prefixes_have_the_asked_share_and_groups_alike() -> None:
    cache = {"prefix_share": "30%", "prefix_fraction": "50%", "groups": 4}
    workload = with_changes(load_workload("longtail"), duration=None, requests=20_000, cache=cache, warmup={})
    groups = [plan.prefix_group for plan in schedule(workload) if plan.prefix_group is not None]
    assert abs(binomial_z(len(groups), 20_000, 0.3)) < Z
    assert chi_square([groups.count(group) for group in range(4)], [0.25] * 4) < CHI_SQUARE[3]


def test_quantities_are_independent_of_one_another() -> None:
    workload = with_changes(load_workload("longtail"), duration=None, requests=20_000, warmup={})
    block = next(plan_blocks(workload, size=20_000))
    columns = [np.diff(block.intended_ns, prepend=0), np.log(block.input_tokens), np.log(block.output_tokens)]
    correlations = np.corrcoef([*columns, block.prefix_group])[np.triu_indices(4, 1)]
    assert (np.abs(correlations) * np.sqrt(20_000) < Z).all()


def test_phases_cold_then_warm_up_then_measured() -> None:
    base = {"requests": 10, "arrivals": {"kind": "constant", "rate": 1}, "cold_start": {"requests": 2}}

    def phases(warmup: dict[str, object]) -> str:
        plans = schedule(Workload.model_validate({**base, "warmup": warmup}))
        return "".join(plan.phase[0] for plan in plans)

    assert phases({}) == "ccmmmmmmmm"
    assert phases({"requests": 3}) == "ccwwwmmmmm"
    assert phases({"duration": "5s"}) == "ccwwwmmmmm"  # those intended before 5 s; the one at 5 s is measured
    assert phases({"duration": "1s"}) == "ccmmmmmmmm"


def test_a_closed_loop_leaves_a_warm_up_by_time_to_the_clock() -> None:
    workload = load_workload("closed")
    assert [phase_at(workload, *at) for at in ((0, 10**10), (1, 0), (1, 4_999_999_999), (1, 5 * 10**9))] == [
        Phase.COLD,
        Phase.WARMUP,
        Phase.WARMUP,
        Phase.MEASURED,
    ]
    assert PHASES == (Phase.COLD, Phase.WARMUP, Phase.MEASURED)


@pytest.mark.parametrize(("shard", "shards"), [(-1, 2), (2, 2), (0, 0)])
def test_a_shard_that_is_none_is_refused(shard: int, shards: int) -> None:
    with pytest.raises(ValueError, match=f"shard {shard} of {shards}"):
        schedule(load_workload("smoke"), shard=shard, shards=shards)
    with pytest.raises(ValueError, match=f"shard {shard} of {shards}"):
        split_users(8, shard, shards)


@given(users=st.integers(0, 100_000), shards=st.integers(1, 500))
def test_users_are_split_evenly(users: int, shards: int) -> None:
    parts = [split_users(users, shard, shards) for shard in range(shards)]
    assert sum(parts) == users
    assert max(parts) - min(parts) <= 1


GOLDEN = [  # fields in the order of PlannedRequest
    PlannedRequest(0, 15184523, 1357, 20, 1, "none", None, Phase.COLD, "chat", 0),
    PlannedRequest(1, 131172934, 12400, 150, 1, "none", None, Phase.MEASURED, "chat", 0),
]
