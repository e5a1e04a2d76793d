"""Mixes of models, tenants and priorities: the asked shares, whole over shards, independent of one another."""

from __future__ import annotations

from collections import Counter

import pytest

from cliffwatch.workload.schedule import schedule, schedule_hash
from cliffwatch.workload.spec import Workload, with_changes
from tests.workload.statistics import CHI_SQUARE, chi_square

MIXED = Workload.model_validate(
    {
        "requests": 20_000,
        "arrivals": {"kind": "poisson", "rate": 100},
        "models": [{"name": "base", "weight": 6}, {"name": "lora-a", "weight": 3}, {"name": "lora-b"}],
        "tenants": [{"name": "free", "weight": 0.75}, {"name": "paid", "weight": 0.25, "header": "X-Plan"}],
        "priority": [{"value": 0, "weight": 9}, {"value": -3}, {"value": 7, "weight": 0}],
    }
)


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("model", {"base": 0.6, "lora-a": 0.3, "lora-b": 0.1}),
        ("tenant", {"free": 0.75, "paid": 0.25}),
        ("priority", {0: 0.9, -3: 0.1}),
    ],
)
def test_each_has_its_share_and_no_weight_is_never_drawn(name: str, shares: dict[object, float]) -> None:
    counts = Counter(getattr(plan, name) for plan in schedule(MIXED))
    assert set(counts) == set(shares)
    assert chi_square([counts[key] for key in shares], list(shares.values())) < CHI_SQUARE[len(shares) - 1]


def test_they_are_drawn_apart() -> None:
    together = Counter((plan.model, plan.tenant, plan.priority) for plan in schedule(MIXED))
    expected = {
        (model, tenant, priority): a * b * c
        for model, a in (("base", 0.6), ("lora-a", 0.3), ("lora-b", 0.1))
        for tenant, b in (("free", 0.75), ("paid", 0.25))
        for priority, c in ((0, 0.9), (-3, 0.1))
    }
    # 12 cells with given shares: 11 degrees of freedom, 1 in 10,000 by chance above 37.4
    assert chi_square([together[key] for key in expected], list(expected.values())) < 37.4


@pytest.mark.parametrize("shards", [2, 3, 7])
def test_shards_hold_the_one_stream(shards: int) -> None:
    parts = [plan for shard in range(shards) for plan in schedule(MIXED, shard=shard, shards=shards)]
    assert sorted(parts, key=lambda plan: plan.request_id) == list(schedule(MIXED))


def test_the_hash_tells_every_change() -> None:
    changed = [
        with_changes(MIXED, tenants=[{"name": "free", "weight": 0.7}, {"name": "paid", "weight": 0.3}]),
        with_changes(MIXED, priority=None),
        with_changes(MIXED, sampling={"top_k": 5}),
        with_changes(MIXED, sampling={"extra": {"guided_regex": "a+"}}),
    ]
    assert len({schedule_hash(workload) for workload in [MIXED, *changed]}) == 5


def test_without_a_mix_nothing_is_said_of_one() -> None:
    plan = next(schedule(Workload.model_validate({"requests": 5, "arrivals": {"kind": "constant", "rate": 1}})))
    assert (plan.model, plan.tenant, plan.priority, plan.session, plan.turn, plan.then) == (None,) * 6
