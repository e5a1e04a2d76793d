"""Slices of time, throughput and PromQL of one's own as rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.slo.prometheus.test_compile import compiled, refused, rules

SLICED = "{sli: ttft, quantile: p95, threshold: 2.5s, slices: 5m, target: 99%}"
THROUGHPUT = "{sli: throughput, slices: {length: 10m, tokens_per_s: 500}, target: 99%}"


def records(objective: str, **watch: object) -> dict[str, str]:
    return {rule["record"]: rule["expr"] for rule in rules(compiled(objective, **watch)) if "record" in rule}


def test_every_window_is_made_of_slices() -> None:
    found = records(SLICED)
    labels = '{slo="s",objective="ttft-2.5s-95pct-in-5m-99pct"}'
    assert found["cliffwatch_slo:events:rate5m"] == f"(cliffwatch_slo:slice:events{labels} >= bool 0.5) / 300"
    assert "* 0.050000001)" in found["cliffwatch_slo:bad:rate5m"]
    for window in ("30m", "1h", "3d"):
        assert (
            found[f"cliffwatch_slo:bad:rate{window}"] == f"avg_over_time(cliffwatch_slo:bad:rate5m{labels}[{window}])"
        )


def test_the_budget_is_of_the_slices() -> None:
    assert records(SLICED)["cliffwatch_slo:budget_left:ratio"].endswith("/ 0.01")


def test_one_bad_slice_is_enough_for_an_alert() -> None:
    (alert,) = [rule for rule in rules(compiled(SLICED, min_bad_events=50)) if rule.get("alert") == "SloBurn1h"]
    assert alert["expr"].endswith('bad:count1h{slo="s",objective="ttft-2.5s-95pct-in-5m-99pct"} >= 1')
    assert "99 % of slices over 30d" in alert["annotations"]["description"]


def test_throughput_is_of_busy_engines() -> None:
    found = records(THROUGHPUT, group_by=["model_name"])
    assert found["cliffwatch_slo:slice:tokens_rate"] == "sum by (model_name) (rate(vllm:generation_tokens_total[10m]))"
    assert "min_over_time(vllm:num_requests_running[10m]) and" in found["cliffwatch_slo:slice:busy"]
    assert "< bool 500" in found["cliffwatch_slo:bad:rate5m"]


@pytest.mark.parametrize(
    ("engine", "tokens"),
    [
        ("tgi", "rate(tgi_request_generated_tokens_sum[10m])"),  # a histogram has no series of its bare name
        ("sglang", 'rate(sglang:realtime_tokens_total{mode=~"decode"}[10m])'),  # other modes are of the prompt
    ],
)
def test_throughput_counts_generated_tokens_alone(engine: str, tokens: str) -> None:
    assert records(THROUGHPUT, engine=engine)["cliffwatch_slo:slice:tokens_rate"] == f"sum({tokens})"


def test_throughput_is_refused_where_the_engine_does_not_tell_it() -> None:
    said = refused(THROUGHPUT, engine="triton")
    assert "nothing that" in said
    assert "allowed: ttft, " in said


@pytest.mark.parametrize(
    ("engine", "tokens"),
    [
        ("sglang", 'sum(rate(sglang:realtime_tokens_total{mode=~"decode"}[10m]))'),  # other modes are prompts' tokens
        ("tgi", "sum(rate(tgi_request_generated_tokens_sum[10m]))"),  # a histogram of answers' lengths
    ],
)
def test_throughput_is_of_tokens_generated(engine: str, tokens: str) -> None:
    assert records(THROUGHPUT, engine=engine)["cliffwatch_slo:slice:tokens_rate"] == tokens


@pytest.mark.parametrize(
    ("watch", "says"),
    [
        ({"engine": "trtllm", "version": "1.1"}, "objectives[0].sli: has no metric in TensorRT-LLM"),
        ({"group_by": ["finished_reason"]}, "has no label finished_reason, which throughput is to be grouped"),
        ({"engine": "sglang", "match": {"mode": "decode"}}, "got 'sglang:num_running_reqs'"),
    ],
)
def test_throughput_is_refused_where_its_series_cannot_be_there(watch: dict[str, Any], says: str) -> None:
    assert says in refused(THROUGHPUT, **watch)


@pytest.mark.parametrize("group_by", [[], ["model_name"]])
def test_own_promql_is_summed_by_the_groups_alone(group_by: list[str]) -> None:
    own = "{sli: promql, name: gate, target: 99%, promql: {all: 'rate(a[{window}])', bad: 'rate(b[{window}])'}}"
    found = records(own, group_by=group_by)
    by = "sum by (model_name) " if group_by else "sum"
    assert found["cliffwatch_slo:events:rate1h"] == f"{by}(rate(a[1h]))"
    assert (
        found["cliffwatch_slo:bad:rate1h"] == f"({by}(rate(b[1h]))) and ({by}(rate(a[1h]))) or ({by}(rate(a[1h]))) * 0"
    )


def test_two_objectives_of_one_label_are_refused() -> None:
    said = refused("{sli: ttft, threshold: 5s, target: 99%}", "{sli: ttft, threshold: 5s, target: 99%, clock: sent}")
    assert "objectives[1]: would share its label" in said
    assert "a `name` of its own" in said
