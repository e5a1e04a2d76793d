"""Composites: what is compiled of them, and what is refused; and how many series groups may make."""

from __future__ import annotations

from typing import Any

import pytest

from tests.slo.prometheus.test_compile import compiled, refused, rules

TTFT = "{sli: ttft, name: first, threshold: 2.5s, target: 95%}"
ITL = "{sli: itl, name: gaps, threshold: 50ms, target: 99%}"
SLICED = "{sli: e2e, name: whole, quantile: p95, threshold: 30s, slices: 5m, target: 99%}"


def found(composite: dict[str, Any], **watch: Any) -> list[dict[str, Any]]:
    result = compiled(TTFT, ITL, composites=[composite], **watch)
    return [rule for rule in rules(result) if rule["labels"].get("objective") == composite["name"]]


def test_a_weighted_composite_has_a_budget_and_alerts() -> None:
    both = found({"name": "chat", "of": ["first", "gaps"], "weights": [3, 1], "target": "99%"})
    (ratio,) = [rule["expr"] for rule in both if rule.get("record") == "cliffwatch_slo:bad:ratio1h"]
    first, gaps = (f'cliffwatch_slo:bad:ratio1h{{slo="s",objective="{name}"}}' for name in ("first", "gaps"))
    assert ratio == f"sum({first} * 3 or {gaps} * 1) / sum({first} * 0 + 3 or {gaps} * 0 + 1)"
    assert [rule["alert"] for rule in both if "alert" in rule] == ["SloBurn1h", "SloBurn6h", "SloBurn1d", "SloBurn3d"]


def test_any_is_the_least_budget_and_leaves_alerts_to_its_parts() -> None:
    (worst,) = found({"name": "worst", "kind": "any", "of": ["first", "gaps"]}, group_by=["model_name"])
    assert worst["expr"].startswith("min by (model_name) (cliffwatch_slo:budget_left:ratio{")


@pytest.mark.parametrize(
    ("composite", "says"),
    [
        ({"name": "c", "of": ["first"], "target": "99%"}, "2 to 20 different objectives"),
        ({"name": "c", "of": ["first", "first"], "target": "99%"}, "2 to 20 different objectives"),
        ({"name": "c", "of": ["first", "gaps"]}, "kind weighted needs a target"),
        ({"name": "c", "of": ["first", "gaps"], "kind": "any", "target": "99%"}, "has neither target nor weights"),
        ({"name": "c", "of": ["first", "gaps"], "target": "99%", "weights": [1]}, "1 weights for 2 objectives"),
        ({"name": "c", "of": ["first", "gaps"], "target": "99%", "weights": [1, 0]}, "above 0"),
        ({"name": "c", "of": ["first", "nothing"], "target": "99%"}, "allowed: first, gaps, whole"),
        ({"name": "c", "of": ["first", "whole"], "target": "99%"}, "mixes slices and events"),
        ({"name": "gaps", "of": ["first", "gaps"], "target": "99%"}, "stands twice"),
        ({"name": "c", "of": ["first", "gaps"], "target": "99%", "kind": "best"}, "'weighted' or 'any'"),
    ],
)
def test_refusals(composite: dict[str, Any], says: str) -> None:
    said = refused(TTFT, ITL, SLICED, composites=[composite])
    assert said.startswith("f.yaml: watch.composites[0]")
    assert says in said


def test_groups_are_bounded_and_the_bound_is_told() -> None:
    result = compiled(TTFT, ITL, group_by=["model_name"], max_groups=40)
    assert [group.get("limit") for group in result.groups] == [40, 40, None]
    records = sum("record" in rule for rule in rules(result))
    assert f"at most {records * 40:,} for 40" in result.series
    assert all("limit" not in group for group in compiled(TTFT).groups)
