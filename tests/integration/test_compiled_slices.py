"""Slices of time, throughput, queue and PromQL of one's own in Prometheus's own hands, their values worked out by hand.

Series have a sample a minute, so a window of 5 minutes holds five samples and four steps.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.test_compiled_rules import TTFT, evaluate, record, slo

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]


def test_idle_slices_are_neither_good_nor_bad(tmp_path: Path) -> None:
    """All of 100 a minute are bad from 30 to 40, then good until 60, then nothing comes.

    A slice is bad with one bad step of its four, 25 %: those that end from 31 to 43, 13 of the 60 until then. With
    requests in them are those until 63. Of the hour until 36, 6 of 36 are bad, above 0.144; until 35, 5 of 35 are not.
    """
    total = "0+100x60 6000x60"
    good = "0+100x30 3000x9 3100+100x19 5000x60"
    text = slo("{sli: ttft, quantile: p95, threshold: 2.5s, slices: 5m, target: 99%}")
    evaluate(
        tmp_path,
        text,
        {f'{TTFT}_bucket{{le="2.5"}}': good, f"{TTFT}_count": total},
        values={
            ("60m", record("bad:ratio30d")): [round(13 / 60, 6)],
            ("120m", record("bad:ratio30d")): [round(13 / 63, 6)],
            ("120m", record("budget_left:ratio")): [round(1 - 13 / 63 / 0.01, 6)],
            ("120m", record("bad:ratio5m")): [],
        },
        alerts={("35m", "SloBurn1h"): False, ("36m", "SloBurn1h"): True, ("120m", "SloBurn1h"): False},
        newest_only=True,
    )


def test_a_slice_exactly_on_its_share_is_good(tmp_path: Path) -> None:
    """5 of 100 a minute bad, which P95 allows; 6 of 100 it does not."""
    for bad, ratio in ((5, 0.0), (6, 1.0)):
        series = {f'{TTFT}_bucket{{le="2.5"}}': f"0+{100 - bad}x60", f"{TTFT}_count": "0+100x60"}
        text = slo("{sli: ttft, quantile: p95, threshold: 2.5s, slices: 5m, target: 99%}")
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio30d")): [ratio]})


def test_slices_with_few_events_do_not_count(tmp_path: Path) -> None:
    """One request a minute, all bad: 5 a slice. At least 5 make every slice bad, at least 20 leave none."""
    series = {f'{TTFT}_bucket{{le="2.5"}}': "0x60", f"{TTFT}_count": "0+1x60"}
    for least, ratios in ((5, [1.0]), (20, [])):
        sliced = f"{{sli: ttft, threshold: 2.5s, slices: {{length: 5m, share: 95%, min_events: {least}}}, target: 99%}}"
        evaluate(tmp_path, slo(sliced), series, values={("60m", record("bad:ratio30m")): ratios})


def test_throughput_counts_while_the_engine_works(tmp_path: Path) -> None:
    """600 tokens/s until 30, 300 until 60, then idle; promised 500.

    Of a slice's four steps two must be slow: (600 + 600 + 300 + 300) / 4 = 450. Bad are those that end from 32 to 60,
    29; the first whole one ends at 5, and from 61 on there is a moment without a request: 56 count.
    """
    series = {
        "vllm:generation_tokens_total": "0+36000x30 1098000+18000x29 1620000x60",
        "vllm:num_requests_running": "3x60 0x60",
    }
    text = slo("{sli: throughput, slices: {length: 5m, tokens_per_s: 500}, target: 99%}")
    evaluate(tmp_path, text, series, values={("120m", record("bad:ratio30d")): [round(29 / 56, 6)]})


def test_the_queue_counts_on_an_edge(tmp_path: Path) -> None:
    queue = "vllm:request_queue_time_seconds"
    series = {f'{queue}_bucket{{le="0.3"}}': "0+90x60", f"{queue}_count": "0+100x60"}
    text = slo("{sli: queue, threshold: 300ms, target: 99%}")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio1h")): [0.1]})


def test_own_promql_counts_what_it_says(tmp_path: Path) -> None:
    """3 of 100 at one gate, none at the other, whose series of failures does not exist: 1.5 %."""
    own = (
        "{sli: promql, name: gate, target: 99%, promql: {all: 'rate(asked[{window}])', bad: 'rate(failed[{window}])'}}"
    )
    series = {'asked{gate="a"}': "0+100x60", 'asked{gate="b"}': "0+100x60", 'failed{gate="a"}': "0+3x60"}
    evaluate(tmp_path, slo(own), series, values={("60m", record("bad:ratio1h")): [0.015]})


def test_a_composite_weighs_ratios_and_leaves_idle_parts_out(tmp_path: Path) -> None:
    """10 % of few first tokens and 2 % of many gaps are bad: 3 to 1 is (3 x 0.1 + 0.02) / 4 = 0.08, however many each.

    Of the second hour only the gaps have events: their 2 % alone.
    """
    itl = "vllm:inter_token_latency_seconds"
    series = {
        f'{TTFT}_bucket{{le="2.5"}}': "0+90x60 5400x70",
        f"{TTFT}_count": "0+100x60 6000x70",
        f'{itl}_bucket{{le="0.05"}}': "0+9800x130",
        f"{itl}_count": "0+10000x130",
    }
    objectives = [
        {"sli": "ttft", "name": "first", "threshold": "2.5s", "target": "95%"},
        {"sli": "itl", "name": "gaps", "threshold": "50ms", "target": "99%"},
    ]
    both = {"of": ["first", "gaps"]}
    composites = [
        {"name": "chat", **both, "weights": [3, 1], "target": "96%"},
        {"name": "worst", "kind": "any", **both},
    ]
    text = yaml.safe_dump(
        {"name": "s", "objectives": objectives, "watch": {"engine": "vllm", "composites": composites}}
    )
    evaluate(
        tmp_path,
        text,
        series,
        values={
            ("60m", record("bad:ratio1h", '{objective="chat"}')): [0.08],
            ("60m", record("budget_left:ratio", '{objective="chat"}')): [-1],
            ("60m", record("budget_left:ratio", '{objective="worst"}')): [-1],
            ("125m", record("bad:ratio1h", '{objective="chat"}')): [0.02],
        },
    )
