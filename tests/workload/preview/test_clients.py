"""The preview of mixes, retries and users who leave, against the schedule and against binomial arithmetic."""

from __future__ import annotations

from collections import Counter

import pytest

from cliffwatch.workload.preview import preview
from cliffwatch.workload.preview.chance import Expected, expected
from cliffwatch.workload.preview.clients import LOOKED_AT
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload
from tests.workload.preview.test_preview import drawn

BASE = {"requests": 1000, "arrivals": {"kind": "poisson", "rate": 100}}


def workload(**changes: object) -> Workload:
    return Workload.model_validate({**BASE, **changes})


@pytest.mark.parametrize(
    ("n", "share", "counts"),
    [
        (1000, 0.25, Expected(250.0, 223, 277)),  # 1.96 x sqrt(1000 x 0.25 x 0.75) = 26.8
        (100, 0.0, Expected(0.0, 0, 0)),
        (100, 1.0, Expected(100.0, 100, 100)),
        (10, 0.05, Expected(0.5, 0, 2)),  # 1.96 x sqrt(0.475) = 1.35
    ],
)
def test_what_to_expect_of_independent_draws(n: int, share: float, counts: Expected) -> None:
    assert expected(n, share) == counts
    assert expected(n, share, bounded=False) == Expected(counts.mean, None, None)


def test_mixes_stand_beside_what_their_weights_let_expect() -> None:
    tenants = [{"name": "free", "weight": 3}, {"name": "[b]paid"}]
    spec = workload(tenants=tenants, priority=[{"value": 0, "weight": 9}, {"value": 10}])
    sent = Counter(plan.tenant for plan in schedule(spec))
    figures = preview(spec)
    free, paid = figures.mixes["tenant"]
    assert (free.key, free.n, free.expected) == ("free", sent["free"], Expected(750.0, 723, 777))
    assert (paid.key, paid.n, paid.expected) == ("[b]paid", sent["[b]paid"], Expected(250.0, 223, 277))
    assert [part.expected.mean for part in figures.mixes["priority"]] == pytest.approx([900, 100])
    text = drawn(figures)
    assert "[b]paid" in text and "223 to 277" in text


def test_a_seed_in_twenty_is_out_of_bounds() -> None:
    """40 seeds, each 95 % (rounded outwards: more) within: over 6 without is chance once in 300."""
    tenants = [{"name": "a"}, {"name": "b"}]
    parts = [preview(workload(seed=seed, tenants=tenants)).mixes["tenant"][0] for seed in range(40)]
    outside = [part for part in parts if not (part.expected.low or 0) <= part.n <= (part.expected.high or 0)]
    assert len(outside) <= 6


def test_a_long_mix_is_cut_and_says_how_much_is_left() -> None:
    figures = preview(workload(models=[{"name": f"lora-{number}"} for number in range(20)]))
    text = drawn(figures)
    assert "12 more" in text
    assert len(figures.mixes["model"]) == 20


def test_a_long_name_leaves_the_numbers_whole() -> None:
    text = drawn(preview(workload(models=[{"name": "m" * 500}, {"name": "b"}])), 80)
    assert "469 to 531" in text  # 500 of 1,000, give or take 1.96 x sqrt(250) = 30.99


def test_turns_of_a_session_share_their_tenant_so_nothing_bounds_their_number() -> None:
    spec = workload(tenants=[{"name": "a"}, {"name": "b"}], sessions={"turns": {"kind": "fixed", "value": 5}})
    part = preview(spec).mixes["tenant"][0]
    assert (part.expected.mean, part.expected.low, part.expected.high) == (500.0, None, None)


def test_retries_are_bounded_by_their_attempts_and_waits() -> None:
    retries = {"attempts": 4, "backoff": {"base": 1, "factor": 2, "max": 3, "jitter": 0.5}, "budget": "20s"}
    figures = preview(workload(retries=retries))
    found = figures.retries
    assert found is not None
    assert (found.attempts, found.max_attempts, found.budget_s) == (4, 4000, 20.0)
    assert (found.min_wait_s, found.max_wait_s) == (3.0, 6.0)  # 1 + 2 + 3 s, half of it at least
    assert "up to 4 attempts, 1,000 to 4,000 in all; 3 s to 6 s of waits" in " ".join(drawn(figures, 200).split())
    assert preview(workload()).retries is None


def test_a_budget_that_is_not_given_is_the_total_time_limit() -> None:
    found = preview(workload(retries={}, timeouts={"total": 77})).retries
    assert found is not None and found.budget_s == 77


def test_users_who_leave_are_those_of_the_schedule() -> None:
    cancellations = {"share": 0.1, "after": {"kind": "uniform", "min": 1, "max": 3}, "since": "send"}
    spec = workload(cancellations=cancellations)
    assert spec.cancellations is not None
    leaving = [spec.cancellations.after_s(spec.seed, number) for number in range(1000)]
    figures = preview(spec)
    found = figures.cancellations
    assert found is not None
    assert found.leaving == sum(seconds is not None for seconds in leaving)
    assert (found.n, found.since, found.expect) == (1000, "send", Expected(100.0, 81, 119))
    assert found.p50_s == pytest.approx(2.0, abs=0.4) and found.p95_s == pytest.approx(2.9, abs=0.2)
    assert f"about 100 (81 to 119); {found.leaving} of the first 1,000" in " ".join(drawn(figures, 200).split())


@pytest.mark.parametrize("share", [0, 1])
def test_nobody_or_everybody_leaves(share: int) -> None:
    spec = workload(cancellations={"share": share, "after": {"kind": "fixed", "value": 2}})
    found = preview(spec).cancellations
    assert found is not None
    assert (found.leaving, found.p50_s) == ((0, None) if share == 0 else (1000, 2.0))
    assert "about " in drawn(preview(spec))


def test_only_the_first_are_looked_at_one_by_one() -> None:
    spec = workload(requests=50_000, cancellations={"share": 0.5, "after": {"kind": "fixed", "value": 2}})
    found = preview(spec).cancellations
    assert found is not None and (found.n, found.expect.mean) == (LOOKED_AT, 25_000.0)
