from __future__ import annotations

import math
from statistics import NormalDist

import pytest

from cliffwatch.workload.cancellations import Cancellations
from tests.workload.statistics import KOLMOGOROV, Z, binomial_z, kolmogorov, lag_z


def cancellations(share: object = 1, **after: object) -> Cancellations:
    return Cancellations.model_validate({"share": share, "after": after})


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"kind": "fixed", "value": -1}, "value"),
        ({"kind": "uniform", "min": 2, "max": 1}, "below min"),
        ({"kind": "exponential", "mean": 0}, "mean"),
        ({"kind": "lognormal", "median": 1, "sigma": 0}, "sigma"),
        ({"kind": "gamma", "mean": 1}, "kind"),
        ({"kind": "fixed"}, "value"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes, part):
    with pytest.raises(ValueError, match=part):
        cancellations(**changes)
    with pytest.raises(ValueError, match="share"):
        cancellations(2, kind="fixed", value=1)


@pytest.mark.parametrize(
    ("after", "cdf"),
    [
        ({"kind": "uniform", "min": 1, "max": 3}, lambda x: (x - 1) / 2),
        ({"kind": "exponential", "mean": 2}, lambda x: 1 - math.exp(-x / 2)),
        ({"kind": "lognormal", "median": 2, "sigma": 0.7}, lambda x: NormalDist(0, 0.7).cdf(math.log(x / 2))),
    ],
)
def test_times_follow_their_distribution(after, cdf):
    words = cancellations(**after)
    assert kolmogorov([words.after_s(7, request_id) for request_id in range(5000)], cdf) < KOLMOGOROV


def test_the_share_that_leaves_is_the_asked_one_and_no_neighbour_knows_of_another():
    words = cancellations("30%", kind="fixed", value=1)
    leaves = [words.after_s(11, request_id) is not None for request_id in range(20_000)]
    assert abs(binomial_z(sum(leaves), len(leaves), 0.3)) < Z
    assert abs(lag_z(leaves)) < Z


def test_none_and_all():
    assert all(cancellations(0, kind="fixed", value=1).after_s(3, number) is None for number in range(1000))
    assert all(cancellations(1, kind="fixed", value=1).after_s(3, number) == 1 for number in range(1000))


def test_the_draw_depends_on_seed_and_request_alone():
    words = cancellations("50%", kind="exponential", mean=1)
    first = [words.after_s(5, number) for number in range(100)]
    assert [words.after_s(5, number) for number in reversed(range(100))] == first[::-1]
    assert [words.after_s(6, number) for number in range(100)] != first
