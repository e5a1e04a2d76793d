"""Shares of the schedule: whatever dies when, every number is someone's and nobody's twice."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.workload.handover import Share, shared_plans
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload

END = 400
WORKLOAD = Workload.model_validate({"requests": 9000, "arrivals": {"kind": "poisson", "rate": 100}})


@given(st.data())
def test_after_any_number_of_handovers_every_number_is_somebodys_and_nobodys_twice(data):
    workers = data.draw(st.integers(1, 5))
    shares = list(Share(0, 1).split(workers))
    done: list[int] = []
    for _ in range(data.draw(st.integers(0, 5))):
        dying = shares.pop(data.draw(st.integers(0, len(shares) - 1)))
        mine = list(dying.below(END))
        in_order = data.draw(st.booleans())  # an open loop issues in order, the users of a closed one do not
        issued = mine[: data.draw(st.integers(0, len(mine)))]
        if not in_order and issued:
            issued = data.draw(st.lists(st.sampled_from(issued), unique=True))
        done += issued
        shares += dying.rest(issued).split(data.draw(st.integers(1, 4)))
    left = [number for share in shares for number in share.below(END)]
    assert sorted(done + left) == list(range(END))
    assert all(list(share.below(END)) == sorted(share.below(END)) for share in shares)


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 30))
def test_the_rest_of_a_share_issued_in_order_is_a_share_without_gaps(start, stride, issued):
    share = Share(start, stride)
    rest = share.rest(list(islice(share, issued)))
    assert rest == Share(start + issued * stride, stride)


@pytest.mark.parametrize("arguments", [(-1, 1), (0, 0), (3, 1, (3,)), (3, 1, (-1,))])
def test_what_is_no_share_is_refused(arguments):
    with pytest.raises(ValueError, match="no share"):
        Share(*arguments)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 8000), st.integers(1, 7), st.lists(st.integers(0, 7999), max_size=5, unique=True))
def test_the_plans_of_a_share_are_those_of_the_one_schedule(start, stride, extra):
    share = Share(start, stride, tuple(sorted(number for number in extra if number < start)))
    found = [plan for plan in shared_plans(WORKLOAD, share) if plan is not None]
    assert [plan.request_id for plan in found] == list(share.below(9000))
    assert found == [plan for plan in schedule(WORKLOAD) if plan.request_id in share]


def test_whoever_looks_for_the_middle_of_a_schedule_pauses_on_the_way():
    assert sum(plan is None for plan in shared_plans(WORKLOAD, Share(8000, 2))) >= 4000 // 64 - 1
