"""Files of Sloth and Pyrra: what is taken, what is told, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cliffwatch.errors import InputError
from cliffwatch.slo.foreign.formats import import_slo
from cliffwatch.slo.foreign.take import Imported
from cliffwatch.slo.sli import Sli

COUNT = 'sum(rate(vllm:time_to_first_token_seconds_count{job="v"}[{{.window}}]))'
BUCKET = 'sum(rate(vllm:time_to_first_token_seconds_bucket{job="v", le="2.5"}[{{ .window }}]))'


def imported(document: object, engine: str | None = None) -> Imported:
    return import_slo(yaml.safe_dump(document), form=None, engine_name=engine, source="f.yaml")


def sloth(*slos: dict[str, Any], **keys: object) -> dict[str, Any]:
    return {"version": "prometheus/v1", "service": "shop", "slos": list(slos), **keys}


def slo(error: str, total: str, objective: object = 99.9, name: str = "errors", **keys: object) -> dict[str, Any]:
    events = {"error_query": error, "total_query": total}
    return {"name": name, "objective": objective, "sli": {"events": events}, **keys}


ERRORS = slo('sum(rate(h{c=~"5.."}[{{.window}}]))', "sum(rate(h[{{.window}}]))")
FIRST = slo(f"(\n  {COUNT}\n  -\n  {BUCKET}\n)\n", COUNT, 95, "first")


def test_sloths_queries_become_promql_and_its_rest_is_told() -> None:
    found = imported(sloth({**ERRORS, "alerting": {"name": "Down"}}, labels={"team": "a"}))
    (one,) = found.slo.objectives
    assert (found.slo.name, one.name, one.target) == ("shop", "errors", 0.999)
    assert one.promql is not None
    assert one.promql.bad == 'sum(rate(h{c=~"5.."}[{window}]))'
    assert {"not kept: labels", "not kept: slos[0].alerting"} < set(found.notes)
    assert any("--engine" in note for note in found.notes)


def test_a_known_engines_histogram_becomes_its_sli() -> None:
    found = imported(sloth(ERRORS, FIRST))
    errors, first = found.slo.objectives
    assert errors.sli is Sli.PROMQL
    assert (first.sli, first.threshold, first.target) == (Sli.TTFT, 2.5, 0.95)
    assert found.slo.watch is not None
    assert (found.slo.watch.engine, found.slo.watch.match) == ("vllm", {"job": "v"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('job="v", le', 'job="w", le'),  # another's bucket
        ('job="v"}', 'job=~"v"}'),
        ('le="2.5"', 'le="+Inf"'),
        ("time_to_first_token_seconds_bucket", "inter_token_latency_seconds_bucket"),
    ],
)
def test_what_only_looks_like_it_stays_promql(old: str, new: str) -> None:
    events = FIRST["sli"]["events"]
    one = slo(events["error_query"].replace(old, new), events["total_query"].replace(old, new), 95, "first")
    assert imported(sloth(one)).slo.objectives[0].sli is Sli.PROMQL


def test_the_object_of_kubernetes_says_the_same() -> None:
    events = ERRORS["sli"]["events"]
    spelt = {"errorQuery": events["error_query"], "totalQuery": events["total_query"]}
    spec = {"service": "shop", "slos": [{"name": "errors", "objective": 99.9, "sli": {"events": spelt}}]}
    document = {"apiVersion": "sloth.slok.dev/v1", "kind": "PrometheusServiceLevel", "metadata": {}, "spec": spec}
    assert imported(document).slo == imported(sloth(ERRORS)).slo


@pytest.mark.parametrize(
    ("one", "told"),
    [
        ({**ERRORS, "sli": {"raw": {"error_ratio_query": "x"}}}, "no count of events"),
        ({**ERRORS, "sli": {"plugin": {"id": "x"}}}, "Sloth alone"),
        ({**ERRORS, "objective": 100}, "no budget"),
        ({**ERRORS, "objective": True}, "99.9"),
        ({**ERRORS, "name": "no spaces"}, "name"),
        (slo("sum(increase(h[{{.window}}]))", "sum(rate(h[{{.window}}]))"), "rate(...)"),
        (slo("sum(rate(h[{{.window}}])", "sum(rate(h[{{.window}}]))"), "pair"),
    ],
)
def test_sloths_files_that_cannot_be_right_are_refused(one: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(sloth(one))
    assert told in str(caught.value)
    assert "slos[0]" in str(caught.value)
    assert "more fault" not in str(caught.value)


def pyrra(indicator: dict[str, Any], **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "pyrra.dev/v1alpha1",
        "kind": "ServiceLevelObjective",
        "metadata": {"name": "api", "namespace": "shop"},
        "spec": {"target": "99.5", "window": "4w", "indicator": indicator, **spec},
    }


RATIO = {"ratio": {"errors": {"metric": 'h{c=~"5.."}'}, "total": {"metric": "h"}, "grouping": ["tenant"]}}
LATENCY = {"latency": {"success": {"metric": 'h_bucket{le="0.1"}'}, "total": {"metric": "h_count"}}}


def test_pyrras_ratio_is_grouped_as_it_was() -> None:
    found = imported(pyrra(RATIO, alerting={"burnrates": False}), engine="vllm")
    (one,) = found.slo.objectives
    assert one.promql is not None
    assert one.promql.all == "sum by (tenant) (rate(h[{window}]))"
    assert one.promql.bad == 'sum by (tenant) (rate(h{c=~"5.."}[{window}]))'
    watch = found.slo.watch
    assert watch is not None
    assert (watch.period, watch.group_by, watch.target_labels) == (28 * 86_400, ("tenant",), ("tenant",))
    assert found.notes == ("not kept: metadata.namespace", "not kept: spec.alerting")


def test_pyrras_latency_counts_all_but_the_bucket() -> None:
    (one,) = imported(pyrra(LATENCY)).slo.objectives
    assert one.promql is not None
    assert one.promql.bad == 'sum(rate(h_count[{window}])) - sum(rate(h_bucket{le="0.1"}[{window}]))'

    known = {
        "success": {"metric": 'vllm:e2e_request_latency_seconds_bucket{model_name="m",le="10"}'},
        "total": {"metric": 'vllm:e2e_request_latency_seconds_count{model_name="m"}'},
    }
    (one,) = imported(pyrra({"latency": known})).slo.objectives
    assert (one.sli, one.threshold, one.target) == (Sli.E2E, 10.0, 0.995)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (pyrra({"latencyNative": {"total": {"metric": "h"}, "latency": "1s"}}), "latency, of a bucket"),
        (pyrra({"bool_gauge": {"metric": "up"}}), "ratio, of two counters"),
        (pyrra({**RATIO, **LATENCY}), "not both"),
        (pyrra(RATIO, window="12h"), "whole days"),
        (pyrra(RATIO, window=""), "whole days"),
        (pyrra(RATIO, target="100"), "no budget"),
        (pyrra({"ratio": {"errors": {"metric": "sum(h)"}, "total": {"metric": "h"}}}), "one metric"),
        (pyrra({"latency": {"success": {"metric": "h_bucket"}, "total": {"metric": "h_count"}}}), "le="),
        (pyrra({"ratio": {"errors": {"metric": "h"}, "total": {"metric": "a{} or b{}"}}}), "one metric"),
        (pyrra({"ratio": {**RATIO["ratio"], "grouping": ["a) (b"]}}), "grouping"),
        ({"name": "ours"}, "--from"),
        ({"kind": "ServiceLevelObjective"}, "missing"),
    ],
)
def test_pyrras_files_that_cannot_be_right_are_refused(document: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(document)
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["", "---\n---\n", "- a\n", "a: [", "kind: ServiceLevelObjective\n---\nkind: x\n"])
def test_texts_that_are_no_such_file_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"f\.yaml"):
        import_slo(text, form=None, engine_name=None, source="f.yaml")
