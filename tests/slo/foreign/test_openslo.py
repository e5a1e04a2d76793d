"""SLO files as OpenSLO and back, and OpenSLO of others."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.slo.foreign.formats import import_slo
from cliffwatch.slo.foreign.native import slo_yaml
from cliffwatch.slo.foreign.openslo_write import openslo_documents, openslo_text
from cliffwatch.slo.foreign.take import Imported
from cliffwatch.slo.spec import SloFile, load_slo, parse_slo, presets

SHARES = st.integers(1, 99_999).map(lambda thousandths: f"{thousandths / 1000}%")
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=1200)


def imported(text: str, engine: str | None = None) -> Imported:
    return import_slo(text, form=None, engine_name=engine, source="f.yaml")


@st.composite
def objectives(draw: Any, number: int) -> dict[str, Any]:
    """One of each kind, with a threshold of its own so that no two are alike."""
    threshold, target = f"{number + 1}s", draw(SHARES)
    length, share = draw(st.sampled_from(["5m", "17m", "1h"])), draw(SHARES)
    kinds: list[dict[str, Any]] = [
        {"sli": draw(st.sampled_from(["ttft", "itl", "e2e"])), "threshold": threshold, "target": target},
        {"sli": "ttft", "threshold": threshold, "quantile": "p99.9"},
        {"sli": "tpot", "threshold": threshold, "quantile": "p95", "slices": length, "target": target},
        {"sli": "queue", "threshold": threshold, "target": target, "slices": {"length": length, "share": share}},
        {"sli": "throughput", "target": target, "slices": {"length": length, "tokens_per_s": number + 0.5}},
        {"sli": "ttft", "threshold": threshold, "target": target, "clock": "sent", "input_tokens": {"min": "8k"}},
        {
            "sli": "promql",
            "target": target,
            "promql": {"all": "rate(a[{window}])", "bad": 'rate(a{p=~"x|[5m]"}[{window}])'},
        },
    ]
    one = draw(st.sampled_from(kinds))
    named = one["sli"] == "promql" or draw(st.booleans())
    return {**one, "name": f"{draw(NAMES)}-{number}"} if named else one


@st.composite
def watches(draw: Any) -> dict[str, Any]:
    periods = [
        {"period": "28d"},
        {"period": "1d"},
        {"calendar": "week"},
        {"calendar": "month"},
        {"calendar": "quarter"},
    ]
    maintenance = [{"weekly": "sun 23:00-01:00"}, {"start": "2026-12-24T22:00:00+02:00", "end": "2026-12-25T02:00:00Z"}]
    return {
        "engine": "vllm",
        "match": draw(st.dictionaries(st.just("job"), TEXT.map(lambda text: text[:50]))),
        "group_by": draw(st.sampled_from([[], ["model_name"], ["instance", "model_name"]])),
        "composites": draw(
            st.sampled_from([[], [{"name": "c", "of": ["a", "b"], "weights": [3, 0.1], "target": "99%"}]])
        ),
        "exclude": {"maintenance": draw(st.sampled_from([[], maintenance])), "sleeping": draw(st.booleans())},
        **draw(st.sampled_from([{}, *periods])),
    }


@st.composite
def files(draw: Any) -> SloFile:
    count = draw(st.integers(1, 4))
    document: dict[str, Any] = {
        "name": draw(TEXT.filter(lambda text: 0 < len(text) <= 100)),
        "description": draw(TEXT),
        "objectives": [draw(objectives(number)) for number in range(count)],
        "cost": draw(st.sampled_from([None, {"gpus": 2, "gpu_hour_usd": 2.5}])),
        "watch": draw(st.none() | watches()),
    }
    return SloFile.model_validate(document)


@settings(max_examples=30, deadline=None)
@given(files())
def test_nothing_is_lost_on_the_way_there_and_back(slo: SloFile) -> None:
    back = imported(openslo_text(slo))
    assert back.slo == slo
    assert back.notes == ()
    assert parse_slo(slo_yaml(slo), source="f.yaml") == slo


@pytest.mark.parametrize("name", presets())
def test_presets_survive(name: str) -> None:
    assert imported(openslo_text(load_slo(name))).slo == load_slo(name)


def chat(**watch: object) -> SloFile:
    document = {
        "name": "chat",
        "objectives": [
            {"sli": "ttft", "threshold": "2.5s", "target": "95%"},
            {"sli": "itl", "threshold": "50ms", "quantile": "p99", "slices": "5m", "target": "99.5%"},
        ],
        "watch": {"engine": "vllm", "match": {"job": "v"}, **watch},
    }
    return parse_slo(yaml.safe_dump(document), source="f.yaml")


def test_what_openslo_has_words_for_stands_there() -> None:
    service, first, second = openslo_documents(chat(calendar="month"))
    assert [one["kind"] for one in (service, first, second)] == ["Service", "SLO", "SLO"]
    assert {one["apiVersion"] for one in (service, first, second)} == {"openslo/v1"}
    assert first["spec"]["service"] == service["metadata"]["name"]
    assert first["spec"]["objectives"] == [{"displayName": "TTFT ≤ 2.5 s", "target": 0.95}]
    assert first["spec"]["budgetingMethod"] == "Occurrences"
    (window,) = first["spec"]["timeWindow"]
    assert (window["duration"], window["isRolling"], window["calendar"]["timeZone"]) == ("1M", False, "UTC")
    ratio = first["spec"]["indicator"]["spec"]["ratioMetric"]
    total = 'sum(rate(vllm:time_to_first_token_seconds_count{job="v"}[5m]))'
    assert ratio["total"]["metricSource"] == {"type": "Prometheus", "spec": {"query": total}}
    sliced = second["spec"]["objectives"][0]
    assert (sliced["target"], sliced["timeSliceTarget"], sliced["timeSliceWindow"]) == (0.995, 0.99, "5m")
    alerts = json.loads(first["metadata"]["annotations"]["cliffwatch/burn-alerts"])
    assert [(one["windows"], one["burn_rate"]) for one in alerts][:2] == [(["1h", "5m"], 14.4), (["6h", "30m"], 6.0)]
    name = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
    assert all(name.fullmatch(one["metadata"]["name"]) for one in (service, first, second))


def test_an_export_without_display_names_and_with_an_sli_of_its_own_is_read() -> None:
    service, *slos = openslo_documents(chat())
    del service["metadata"]["displayName"]
    slis = []
    for number, one in enumerate(slos):
        slis.append(
            {"apiVersion": "openslo/v1", "kind": "SLI", **one["spec"]["indicator"], "metadata": {"name": f"{number}"}}
        )
        one["spec"] |= {"indicator": None, "indicatorRef": f"{number}"}
    assert imported(yaml.safe_dump_all([service, *slos, *slis])).slo == chat()


def test_names_stay_apart_where_only_their_spelling_differs() -> None:
    promql = {"all": "rate(a[{window}])", "bad": "rate(b[{window}])"}
    kinds = [
        {"sli": "promql", "name": name, "target": "9%", "promql": promql} for name in ("A", "a", "a" * 59, "A" * 59)
    ]
    documents = openslo_documents(SloFile.model_validate({"name": "_", "objectives": kinds}))
    names = [one["metadata"]["name"] for one in documents[1:]]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 63


def test_what_was_changed_in_openslo_is_taken_from_there() -> None:
    service, *slos = openslo_documents(chat())
    for one in slos:
        one["spec"]["timeWindow"] = [{"duration": "4w", "isRolling": True}]
    del slos[0]["spec"]["objectives"][0]["target"]
    slos[0]["spec"]["objectives"][0]["targetPercent"] = 99.9
    slos[1]["spec"]["objectives"][0]["timeSliceWindow"] = 10
    slos[1]["spec"]["indicator"]["spec"]["ratioMetric"]["total"]["metricSource"]["spec"]["query"] = "another"
    found = imported(yaml.safe_dump_all([service, *slos]))
    assert found.slo.watch is not None
    assert found.slo.watch.period == 28 * 86_400
    assert found.slo.objectives[0].target == 0.999
    assert found.slo.objectives[1].slices is not None
    assert found.slo.objectives[1].slices.length == 600
    (note,) = found.notes
    assert "annotation cliffwatch/objective says what is counted" in note


FOREIGN: dict[str, Any] = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "api", "annotations": {"team": "a"}},
    "spec": {
        "service": "shop",
        "indicator": {
            "metadata": {"name": "errors"},
            "spec": {
                "ratioMetric": {
                    "counter": True,
                    "good": {
                        "metricSource": {"type": "Prometheus", "spec": {"query": 'sum(rate(h{c!~"5.."}[{{.window}}]))'}}
                    },
                    "total": {"metricSource": {"type": "Prometheus", "spec": {"query": "sum(rate(h[{{.window}}]))"}}},
                }
            },
        },
        "timeWindow": [{"duration": "4w", "isRolling": True}],
        "budgetingMethod": "Occurrences",
        "objectives": [{"target": 0.99}, {"targetPercent": 99.9}],
        "alertPolicies": [{"alertPolicyRef": "wake-up"}],
    },
}


def changed(path: str, value: object) -> str:
    """FOREIGN with one value replaced, as YAML."""
    document = copy.deepcopy(FOREIGN)
    *parents, last = path.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return yaml.safe_dump(document)


def test_a_foreign_file_becomes_promql_and_says_what_is_lost() -> None:
    found = imported(yaml.safe_dump(FOREIGN), engine="vllm")
    assert [(one.name, one.target) for one in found.slo.objectives] == [("api-1", 0.99), ("api-2", 0.999)]
    promql = found.slo.objectives[0].promql
    assert promql is not None
    assert promql.all == "sum(rate(h[{window}]))"
    assert promql.bad == 'sum(rate(h[{window}])) - sum(rate(h{c!~"5.."}[{window}]))'
    assert found.slo.watch is not None
    assert found.slo.watch.period == 28 * 86_400
    assert set(found.notes) == {"not kept: spec.alertPolicies of api", "not kept: annotation team of api"}


def test_without_an_engine_the_period_is_said_to_be_lost() -> None:
    found = imported(yaml.safe_dump(FOREIGN))
    assert found.slo.watch is None
    assert f"not kept without a watch: period {28 * 86_400}" in found.notes


@pytest.mark.parametrize(
    ("query", "promql"),
    [
        ('h{c="[5m]"}', 'rate(h{c="[5m]"}[{window}])'),
        ('sum(rate(h{c="[5m]"}[5m]))', 'sum(rate(h{c="[5m]"}[{window}]))'),
    ],
)
def test_counters_and_fixed_ranges_become_rates_over_every_window(query: str, promql: str) -> None:
    found = imported(changed("spec.indicator.spec.ratioMetric.total.metricSource.spec.query", query)).slo.objectives[0]
    assert found.promql is not None
    assert found.promql.all == promql


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("apiVersion", "openslo/v1alpha", "openslo/v1"),
        ("spec.objectives", [{"target": 1}], "no budget"),
        ("spec.objectives", [{"target": 0.9, "targetPercent": 90}], "target or targetPercent"),
        ("spec.objectives", [{"target": 0.9, "timeSliceTarget": 0.9, "timeSliceWindow": "5m"}], "Timeslices"),
        (
            "spec",
            {
                **FOREIGN["spec"],
                "budgetingMethod": "Timeslices",
                "objectives": [{"target": 0.9, "timeSliceTarget": 0.9, "timeSliceWindow": 1}],
            },
            "objectives[0].timeSliceWindow: cannot be used; got 1; allowed: whole minutes, 5m to 1h",
        ),
        ("spec.timeWindow", [{"duration": "1M", "isRolling": True}], "whole"),
        ("spec.timeWindow", [{"duration": "1Y", "calendar": {"startTime": "2024-01-01 00:00:00"}}], "1w, 1M, 1Q"),
        ("spec.timeWindow", [{"duration": "1w", "calendar": {"startTime": "2024-01-02 00:00:00"}}], "Monday"),
        ("spec.timeWindow", [{"duration": "1w", "calendar": {"startTime": "soon"}}], "soon"),
        (
            "spec.timeWindow",
            [{"duration": "1M", "calendar": {"startTime": "2024-01-01 00:00:00", "timeZone": "Europe/Berlin"}}],
            "UTC",
        ),
        ("spec.indicator.spec", {"thresholdMetric": {}}, "counts no events"),
        ("spec.indicator.spec.ratioMetric.raw", {}, "no count of events"),
        ("spec.indicator.spec.ratioMetric.total.metricSource.type", "Datadog", "Prometheus"),
        ("spec.indicator.spec.ratioMetric.total.metricSource.spec.query", "sum(increase(h[5m]))", "rate(...)"),
        ("spec.indicator.spec.ratioMetric.total.metricSource.spec.query", "sum(h)", "rate(requests_total"),
        ("spec.indicatorRef", "elsewhere", "not both"),
        ("spec.budgetingMethod", "RatioTimeslices", "Timeslices"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_mend(path: str, value: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(changed(path, value))
    assert told in str(caught.value)


def test_indicators_of_their_own_are_found_by_name() -> None:
    document = copy.deepcopy(FOREIGN)
    sli = {
        "apiVersion": "openslo/v1",
        "kind": "SLI",
        "metadata": {"name": "errors"},
        **document["spec"].pop("indicator"),
    }
    document["spec"]["indicatorRef"] = "errors"
    assert imported(yaml.safe_dump_all([document, sli])).slo == imported(yaml.safe_dump(FOREIGN)).slo
    with pytest.raises(InputError, match="names no SLI"):
        imported(yaml.safe_dump(document))


@pytest.mark.parametrize("annotation", ["no json", "[]", '{"sli": "sorcery"}', "[" * 100_000])
def test_an_annotation_that_was_spoilt_is_refused(annotation: str) -> None:
    service, *slos = openslo_documents(chat())
    slos[0]["metadata"]["annotations"]["cliffwatch/objective"] = annotation
    with pytest.raises(InputError):
        imported(yaml.safe_dump_all([service, *slos]))
