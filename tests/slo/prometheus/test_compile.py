"""What a compiled SLO file holds, and what is refused with its mend."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.files import prometheus_rule, rule_file
from cliffwatch.slo.prometheus.rules import Compiled, compile_rules
from cliffwatch.slo.spec import parse_slo


def compiled(*objectives: str, name: str = "s", **watch: object) -> Compiled:
    document: dict[str, Any] = {"name": name, "objectives": [yaml.safe_load(one) for one in objectives]}
    document["watch"] = {"engine": "vllm", **watch}
    return compile_rules(parse_slo(yaml.safe_dump(document), source="f.yaml"), source="f.yaml")


def rules(result: Compiled) -> list[dict[str, Any]]:
    return [rule for group in result.groups for rule in group["rules"]]


def refused(*objectives: str, **watch: object) -> str:
    with pytest.raises(InputError) as caught:
        compiled(*objectives, **watch)
    return str(caught.value)


TTFT = "{sli: ttft, threshold: 2.5s, target: 99%}"


@pytest.mark.parametrize("period", ["30d", "1d", "3d"])  # of which the last two are windows as well
def test_every_rule_has_a_name_and_labels_of_its_own(period: str) -> None:
    result = compiled(
        TTFT,
        "{sli: ttft, threshold: 5s, target: 99%}",
        "{sli: ttft, threshold: 5s, target: 99.9%, clock: sent}",
        period=period,
        composites=[{"name": "both", "of": ["ttft-2.5s-99pct", "ttft-5s-99pct"], "kind": "weighted", "target": "99%"}],
    )
    keys = [(rule.get("record", rule.get("alert")), tuple(rule["labels"].items())) for rule in rules(result)]
    assert len(set(keys)) == len(keys)


def test_a_ratio_never_a_quantile_and_both_sides_are_sums() -> None:
    for rule in rules(compiled(TTFT, "{sli: availability, target: 99.9%}", group_by=["instance"])):
        assert "histogram_quantile" not in rule["expr"]
        for rate in re.finditer(r"rate\(", rule["expr"]):
            assert "sum by (instance) (" in rule["expr"][: rate.start()]


def test_the_period_sets_the_factors() -> None:
    (month,) = [rule for rule in rules(compiled(TTFT)) if rule.get("alert") == "SloBurn1h"]
    (week,) = [rule for rule in rules(compiled(TTFT, period="7d")) if rule.get("alert") == "SloBurn1h"]
    assert "> 0.144\n" in month["expr"]
    assert "> 0.0336\n" in week["expr"]


def test_severities_and_windows() -> None:
    alerts = {rule["alert"]: rule for rule in rules(compiled(TTFT)) if rule.get("alert", "").startswith("SloBurn")}
    assert {name: rule["labels"]["severity"] for name, rule in alerts.items()} == {
        "SloBurn1h": "page", "SloBurn6h": "page", "SloBurn1d": "ticket", "SloBurn3d": "ticket",
    }  # fmt: skip
    for short, name in (("5m", "SloBurn1h"), ("30m", "SloBurn6h"), ("2h", "SloBurn1d"), ("6h", "SloBurn3d")):
        assert f"bad:ratio{short}{{" in alerts[name]["expr"]


def test_budgets_are_exact_decimals() -> None:
    text = rule_file(compiled("{sli: availability, target: 99.9%}"))
    assert "/ 0.001\n" in text
    assert "vector(0.999)" in text
    assert "00000009" not in text


def test_a_threshold_between_edges_is_refused_with_its_neighbours_and_the_flag() -> None:
    message = refused("{sli: ttft, threshold: 300ms, target: 95%}", version="0.33.0")
    assert message.startswith("f.yaml: objectives[0].threshold: between two bucket edges")
    assert "between that of 250 ms and that of 500 ms" in message
    assert "allowed: 250 ms or 500 ms" in message
    flag = re.search(r"--custom-histogram-buckets '(\{.*?\})'", message)
    assert flag is not None
    listed = yaml.safe_load(flag[1])["time_to_first_token"]
    assert 0.3 in listed
    assert listed == sorted(listed)
    assert len(listed) == 23


def test_a_threshold_beside_an_edge_is_told_with_the_digits_that_differ() -> None:
    message = refused("{sli: ttft, threshold: 1.0000001s, target: 95%}", version="0.33.0")
    assert "1.0000001 s" in message.split("allowed:")[0]
    flag = re.search(r"--custom-histogram-buckets '(\{.*?\})'", message)
    assert flag is not None
    assert 1.0000001 in yaml.safe_load(flag[1])["time_to_first_token"]


def test_the_mend_of_the_refusal_compiles() -> None:
    edges = {"ttft": [0.1, 0.25, 0.3, 0.5]}
    result = compiled("{sli: ttft, threshold: 300ms, target: 95%}", version="0.33.0", edges=edges)
    assert any('le=~"0\\\\.3"' in rule["expr"] for rule in rules(result))


def test_no_flag_is_told_for_a_version_that_lacks_it() -> None:
    message = refused("{sli: ttft, threshold: 300ms, target: 95%}", version="0.20.0")
    assert "--custom" not in message
    assert "allowed: 250 ms or 500 ms" in message


def test_a_threshold_beyond_the_last_edge_cannot_be_decided() -> None:
    """vLLM up to 0.8.0 ends at 10 s: everything longer is one bucket."""
    message = refused("{sli: ttft, threshold: 20s, target: 95%}", version="0.8.0")
    assert "beyond the last bucket edge" in message
    assert "allowed: 10 s" in message
    assert compiled("{sli: ttft, threshold: 20s, target: 95%}", version="0.8.5").notes == ()


def test_without_a_version_old_buckets_are_counted_by_their_own_edge_and_said() -> None:
    result = compiled("{sli: ttft, threshold: 20s, target: 95%}")
    assert any("older buckets count by 10 s" in note for note in result.notes)


def test_milliseconds_stay_milliseconds() -> None:
    """Triton's first response is in ms, with an edge at 500."""
    result = compiled("{sli: ttft, threshold: 500ms, target: 95%}", engine="triton")
    assert any(
        'nv_inference_first_response_histogram_ms_bucket{le=~"500(\\\\.0+)?"}' in rule["expr"] for rule in rules(result)
    )
    assert "allowed: 100 ms or 500 ms" in refused("{sli: ttft, threshold: 250ms, target: 95%}", engine="triton")


def test_a_version_that_nobody_has_described_is_said() -> None:
    assert "version 9.9 is newer than what this catalog describes" in compiled(TTFT, version="9.9").notes[0]
    assert not any("newer" in note for note in compiled(TTFT, version="0.33.0").notes)


def test_sglang_has_edges_of_its_own() -> None:
    message = refused("{sli: ttft, threshold: 2.5s, target: 95%}", engine="sglang")
    assert "allowed: 2 s or 4 s; or start SGLang with --bucket-time-to-first-token 0.1 0.2" in message


def test_a_factor_out_of_reach_is_replaced_and_said() -> None:
    result = compiled("{sli: ttft, threshold: 2.5s, target: 90%}")
    (alert,) = [rule for rule in rules(result) if rule.get("alert") == "SloBurn1h"]
    assert "> 0.5\n" in alert["expr"]
    assert any(
        "14.4 over 1h is out of reach for a target of 90 %; it alerts from 5 on" in note for note in result.notes
    )


@pytest.mark.parametrize(
    ("objective", "watch", "message"),
    [
        ("{sli: ttft, threshold: 2.5s, target: 95%}", {"engine": "llamacpp"}, "no histogram at all"),
        ("{sli: e2e, threshold: 2.5s, target: 95%}", {"engine": "triton"}, "sum of microseconds"),
        ("{sli: tpot, threshold: 50ms, target: 95%}", {"version": "0.8.5"}, "since 0.11.0"),
        ("{sli: ttfa, threshold: 1s, target: 95%}", {}, "allowed: ttft, itl, tpot"),
        ("{sli: ttft, threshold: 2.5s, target: 95%, clock: intended}", {}, "known to load runs only"),
        ("{sli: ttft, threshold: 2.5s, target: 95%, input_tokens: {min: 8k}}", {}, "known to load runs only"),
        ("{sli: availability, target: 99%}", {"group_by": ["model_name"]}, "has no label model_name"),
        ("{sli: goodput, target: 90%}", {}, "add up to at most 0.1, goodput meets its target"),
        (TTFT, {"group_by": ["le"]}, "one that the rules use"),
        (TTFT, {"group_by": ["tenant"]}, "has no label tenant"),
        (TTFT, {"group_by": ["job", "job"]}, "names a label twice"),
        (TTFT, {"match": {"slo": "x"}}, "one that the rules use"),
        (TTFT, {"scrape_interval": "2m"}, "under 4 scrapes"),
        (TTFT, {"period": "36h"}, "whole days"),
        (TTFT, {"version": "0.5.4"}, "older than 0.6"),
        (TTFT, {"engine": "vlm"}, "no engine of the catalog"),
        (TTFT, {"edges": {"first": [1]}}, "no layout of vLLM"),
        (TTFT, {"edges": {"ttft": [2, 1]}}, "do not rise"),
        (TTFT, {"group_by": ["a b"]}, "watch"),
        (TTFT, {"name": "чат"}, "cannot name rules"),
    ],
)  # fmt: skip
def test_refusals(objective: str, watch: dict[str, Any], message: str) -> None:
    said = refused(objective, *([TTFT] if "goodput" in objective else []), **watch)
    assert message in said
    assert said.startswith("f.yaml: ")


@pytest.mark.parametrize("target", ["100%", "0", "-1", "100.5%"])
def test_targets_without_a_budget_are_refused(target: str) -> None:
    assert "objectives[0].target" in refused(f"{{sli: ttft, threshold: 2.5s, target: {target}}}")


def test_a_target_of_seven_digits_is_kept() -> None:
    result = compiled("{sli: availability, target: 99.99999%}")
    assert "/ 0.0000001\n" in rule_file(result)
    (alert,) = [rule for rule in rules(result) if rule.get("alert") == "SloBurn1h"]
    assert "> 0.00000144\n" in alert["expr"]


def test_without_watch_there_is_nothing_to_compile() -> None:
    slo = parse_slo(f"name: s\nobjectives: [{TTFT}]\n", source="f.yaml")
    with pytest.raises(InputError, match=r"f\.yaml: watch: is missing"):
        compile_rules(slo, source="f.yaml")


def test_label_values_cannot_break_out() -> None:
    for rule in rules(compiled(TTFT, match={"job": 'a"} or vector(1) or up{x="'})):
        if "vector(1)" in rule["expr"]:
            assert 'job="a\\"} or vector(1) or up{x=\\""' in rule["expr"]


def test_the_operators_object_holds_the_same_groups() -> None:
    result = compiled(TTFT)
    document = yaml.safe_load(prometheus_rule(result, "Chat_1"))
    assert (document["kind"], document["metadata"]["name"]) == ("PrometheusRule", "chat-1")
    assert document["spec"]["groups"] == yaml.safe_load(rule_file(result))["groups"]


def test_runbooks_are_urls_that_nothing_can_be_smuggled_into() -> None:
    made = rules(compiled(TTFT, runbooks="https://wiki.example/slo/"))
    links = {one["alert"]: one["annotations"]["runbook_url"] for one in made if "alert" in one}
    assert links["SloBurn6h"] == "https://wiki.example/slo/SloBurn6h"
    assert links["EngineHung"] == "https://wiki.example/slo/EngineHung"
    for wrong in ("wiki", "ftp://a/b", "https://me:secret@wiki/", "https://a/{{ query `up` }}", "https://a/ b"):
        with pytest.raises(InputError, match=r"watch\.runbooks: .*allowed: a URL such as"):
            compiled(TTFT, runbooks=wrong)


def test_contributors_are_told_by_what_the_group_does_not_fix() -> None:
    def told(**watch: object) -> str:
        (alert,) = [one for one in rules(compiled(TTFT, **watch)) if one.get("alert") == "SloBurn1h"]
        return str(alert["annotations"].get("contributors", ""))

    assert "by (instance, model_name)" in told()
    assert "by (instance)" in told(group_by=["model_name"])
    assert "by (model_name)" in told(match={"instance": "a"})
    assert told(match={"instance": "a"}, group_by=["model_name"]) == ""
