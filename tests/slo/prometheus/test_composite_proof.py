"""Composites in made traffic: when their alerts must fire, against times worked out by hand; which can be fed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cliffwatch.slo.prometheus.composite_feed import Together, parts_of, together
from cliffwatch.slo.prometheus.composite_scenarios import of_single_parts, of_the_least
from cliffwatch.slo.prometheus.feed import NotFed
from cliffwatch.slo.prometheus.terms import Part
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from tests.slo.prometheus.test_scenarios import terms

THREE, ONE = Decimal("0.75"), Decimal("0.25")
TTFT = {"sli": "ttft", "threshold": "2.5s", "target": "95%"}
AVAILABILITY = {"sli": "availability", "target": "99%"}


def test_slices_of_parts_fill_a_window_by_their_weights() -> None:
    """All bad. The first part's slices of 10 minutes allow half and are bad after 5; the second's of 5 minutes allow a
    tenth, bad after 0.5. An hour's 0.144 is 8.64 min: 0.75 (t - 5) + 0.25 (t - 0.5) = 8.64 at 12.515 min. One bad slice
    of either: (t - 0.5) / 5 + (t - 5) / 10 = 1 at 5.33 min."""
    parts = (Part("a", THREE, (10, Decimal("0.5"))), Part("b", ONE, (5, Decimal("0.1"))))
    of = replace(terms("0.99"), parts=parts)
    assert of.fires_after_s(Decimal(1), of.alerts[0]) == pytest.approx(12.515 * 60)
    assert of.turns_after_s(Decimal(1)) == 300
    assert of.counted(Decimal("0.2")) == ONE
    assert of.compared(Decimal("0.1"), of.alerts[0]) == 0


def test_a_part_that_is_bad_alone_has_its_weight_and_with_events_alone_all() -> None:
    of = replace(terms("0.99"), parts=(Part("a", THREE), Part("b", ONE, apart=False)))
    found = {one.name: one.samples[0].value for one in of_single_parts(of)}
    assert found == {"a alone is bad": THREE, "a alone has events": 1, "b alone has events": 1}


def test_the_least_budget_is_of_the_part_that_has_the_smallest() -> None:
    """2 % bad: of 5 % there is 0.6 left, of 1 % -1. All bad: -19 and -99."""
    of = replace(terms("0.99"), parts=(Part("a", THREE), Part("b", ONE)))
    found = {one.name: one.samples[0].value for one in of_the_least(of, [Decimal("0.05"), Decimal("0.01")])}
    assert (found["2 % bad"], found["a alone is bad"], found["b alone has events"]) == (-1, -19, -99)
    assert found["missing series"] is None


def fed(*objectives: dict[str, Any], of: tuple[str, ...] = ("a", "b")) -> Together | NotFed:
    composite = {"name": "c", "of": of, "target": "99%", "weights": [3, 1]}
    watch = Watch.model_validate({"engine": "vllm", "composites": [composite]})
    return together(watch.composites[0], [Objective.model_validate(one) for one in objectives], watch)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        (TTFT, AVAILABILITY, True),
        (TTFT, {**TTFT, "threshold": "5s"}, True),
        (AVAILABILITY, {**AVAILABILITY, "target": "98%"}, False),
    ],
)
def test_parts_are_apart_where_they_count_on_series_of_their_own(
    first: dict[str, Any], second: dict[str, Any], apart: bool
) -> None:
    found = fed(first, second)
    assert isinstance(found, Together)
    composite = Watch.model_validate(
        {"engine": "vllm", "composites": [{"name": "c", "of": ["a", "b"], "target": "99%", "weights": [3, 1]}]}
    ).composites[0]
    assert [(part.weight, part.apart) for part in parts_of(composite, found)] == [(THREE, apart), (ONE, apart)]


def own(bad: str) -> dict[str, Any]:
    rates = {"all": "rate(asked[{window}])", "bad": bad}
    return {"sli": "promql", "name": "own", "target": "99%", "promql": rates}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (own("increase(a[{window}])"), TTFT, "its part a cannot be: `bad` of its PromQL"),
        (
            own('rate(asked{code="500"}[{window}])'),
            own('rate(asked{slow="yes"}[{window}])'),
            "a and b count on the same",
        ),
    ],
)
def test_parts_that_would_disturb_each_other_are_not_fed(
    first: dict[str, Any], second: dict[str, Any], why: str
) -> None:
    found = fed(first, second)
    assert isinstance(found, NotFed)
    assert why in found.why
