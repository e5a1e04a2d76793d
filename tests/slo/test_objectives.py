"""Objectives by quantile, over slices of time, of one's own PromQL: what is read, and what is refused with its mend."""

from __future__ import annotations

import pytest
import yaml

from cliffwatch.errors import InputError
from cliffwatch.slo.spec import Objective, SloFile, parse_slo, refuse_for_runs


def read(objective: str) -> SloFile:
    text = yaml.safe_dump({"name": "a", "objectives": [yaml.safe_load(objective)]})
    return parse_slo(text, source="slo.yaml")


def only(objective: str) -> Objective:
    return read(objective).objectives[0]


@pytest.mark.parametrize("quantile", ["p95", "P95", "95%", "0.95"])
def test_a_quantile_is_the_target(quantile: str) -> None:
    """P95 ≤ 2.5 s: at most 5 % are above 2.5 s."""
    by_quantile = only(f"{{sli: ttft, quantile: {quantile}, threshold: 2.5s}}")
    assert by_quantile == only("{sli: ttft, target: 95%, threshold: 2.5s}")


def test_a_quantile_of_slices_is_their_share() -> None:
    one = only("{sli: ttft, quantile: p99.9, threshold: 2s, slices: 5m, target: 99%}")
    assert one == only("{sli: ttft, threshold: 2s, slices: {length: 5m, share: 99.9%}, target: 99%}")
    assert one.slices is not None
    assert (one.slices.length, one.slices.share, one.target) == (300, 0.999, 0.99)
    assert one.label == "TTFT ≤ 2 s for 99.9 % in slices of 5 min"


def test_what_only_prometheus_knows_has_labels_for_people() -> None:
    assert only("{sli: queue, threshold: 300ms, target: 99%}").label == "queue time ≤ 300 ms"
    throughput = only("{sli: throughput, slices: {length: 10m, tokens_per_s: 500}, target: 99%}")
    assert throughput.label == "throughput ≥ 500 tokens/s in slices of 10 min"


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        ("{sli: ttft, quantile: p95, target: 95%, threshold: 2s}", "say the same"),
        ("{sli: ttft, quantile: p95}", "quantile needs a threshold"),
        ("{sli: availability, quantile: p95}", "quantile needs a threshold"),
        ("{sli: ttft, quantile: p100, threshold: 2s}", "such as p95"),
        ("{sli: ttft, quantile: 95, threshold: 2s}", "such as p95"),
        ("{sli: ttft, quantile: [1], threshold: 2s}", "such as p95"),
        ("{sli: ttft, quantile: 100%, threshold: 2s}", "leaves no budget"),
        ("{sli: ttft, quantile: p95, threshold: 2s, slices: {length: 5m, share: 9%}, target: 99%}", "say the same"),
        ("{sli: ttft, threshold: 2s, slices: 5m, target: 99%}", "slices of ttft need share"),
        ("{sli: ttft, threshold: 2s, slices: {length: 5m, tokens_per_s: 3, share: 9%}, target: 9%}", "no tokens_per_s"),
        ("{sli: ttft, quantile: p95, threshold: 2s, slices: 4m, target: 99%}", "whole minutes, 5m to 1h"),
        ("{sli: ttft, quantile: p95, threshold: 2s, slices: 330s, target: 99%}", "whole minutes, 5m to 1h"),
        ("{sli: ttft, quantile: p95, threshold: 2s, slices: 5m}", "target"),
        ("{sli: throughput, target: 99%}", "throughput needs slices"),
        ("{sli: throughput, threshold: 2s, slices: {length: 5m, tokens_per_s: 5}, target: 99%}", "neither a threshold"),
        ("{sli: throughput, slices: {length: 5m, tokens_per_s: -5}, target: 99%}", "above 0 tokens/s"),
        ("{sli: queue, threshold: 2s, target: 99%, clock: sent}", "queue"),
        ("{sli: queue, threshold: 2s, target: 99%, input_tokens: {max: 8k}}", "takes no input_tokens"),
        ("{sli: promql, target: 99%, promql: {all: 'rate(a[{window}])', bad: 'rate(b[{window}])'}}", "needs name"),
        ("{sli: promql, name: a, target: 99%}", "needs promql"),
        ("{sli: goodput, target: 90%, threshold: 2s}", "neither a threshold"),
        ("{sli: goodput, target: 90%, input_tokens: {max: 8k}}", "takes no input_tokens"),
        ("{sli: ttft, threshold: 1s, target: 9%, promql: {all: 'a[{window}]', bad: 'b[{window}]'}}", "takes no promql"),
        ("{sli: promql, name: a, target: 99%, promql: {all: 'rate(a[5m])', bad: 'rate(b[{window}])'}}", "[{window}]"),
        ("{sli: promql, name: a, target: 99%, promql: {all: 'a{x=\"{window}\"}', bad: 'b[{window}]'}}", "[{window}]"),
        ("{sli: promql, name: a, target: 99%, promql: {all: 'rate(a[{window}]', bad: 'b[{window}]'}}", "do not pair"),
        (
            "{sli: promql, name: a, target: 99%, promql: {all: 'a[{window}]', bad: 'b{quantile=\"0.9\"}[{window}]'}}",
            "reads quantiles",
        ),
        ("{sli: promql, name: a, target: 9%, promql: {all: 'a[{window}]) or vector(1) + (b', bad: b}}", "do not pair"),
        ("{sli: promql, name: a, target: 9%, promql: {all: 'a[{window}] #', bad: 'b[{window}]'}}", "or a comment"),
        ("{sli: promql, name: a, target: 9%, promql: {all: 'a[{window}]', bad: 'b{c=\"}[{window}]'}}", "do not pair"),
        ("{sli: promql, name: 'a b', target: 99%, promql: {all: 'a[{window}]', bad: 'b[{window}]'}}", "name"),
    ],
)  # fmt: skip
def test_refusals_name_the_mend(objective: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read(objective)
    assert str(caught.value).startswith("slo.yaml: objectives")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "objective",
    [
        "{sli: queue, threshold: 300ms, target: 99%}",
        "{sli: throughput, slices: {length: 5m, tokens_per_s: 5}, target: 99%}",
        "{sli: ttft, quantile: p95, threshold: 2s, slices: 5m, target: 99%}",
        "{sli: promql, name: a, target: 99%, promql: {all: 'rate(a[{window}])', bad: 'rate(b[{window}])'}}",
    ],
)
def test_load_runs_are_not_judged_by_what_their_rows_cannot_tell(objective: str) -> None:
    with pytest.raises(InputError, match=r"slo\.yaml: objectives\[0\]: is known to Prometheus only"):
        refuse_for_runs(read(objective), source="slo.yaml")


def test_goodput_needs_objectives_to_meet() -> None:
    with pytest.raises(InputError, match=r"meet every other objective; .*allowed: others beside it"):
        read("{sli: goodput, target: 90%}")


def test_signs_within_quotes_are_no_brackets() -> None:
    promql = "{all: 'rate(a{b=\")#\"}[{window}])', bad: 'rate(b{c=~`[(]`}[{window}])'}"
    assert only(f"{{sli: promql, name: gate, target: 9%, promql: {promql}}}").label == "gate"
