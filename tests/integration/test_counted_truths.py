"""Small inputs with which naive PromQL is wrong or silent, in promtool's hands: what the compiled rules must count."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.test_compiled_rules import TTFT, evaluate, record, slo

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

REQUESTS, ERRORS = "llm_d_epp_request_total", "llm_d_epp_request_error_total"


def test_a_threshold_on_an_edge_is_exact(tmp_path: Path) -> None:
    """1000 a minute, 900 within 0.25 s, 990 within 0.5 s: no share between them is ever told."""
    series = {
        f'{TTFT}_bucket{{le="0.25"}}': "0+900x60",
        f'{TTFT}_bucket{{le="0.5"}}': "0+990x60",
        f"{TTFT}_count": "0+1000x60",
    }
    for threshold, bad in (("250ms", 0.1), ("500ms", 0.01)):
        text = slo(f"{{sli: ttft, threshold: {threshold}, target: 95%}}")
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [bad]})


def test_just_under_a_percentile_is_missed(tmp_path: Path) -> None:
    """800 within 1 s, 949 within 2.5 s, 1000 within 5 s: P95 is over 2.5 s, and 5 % are spent 1.02 times."""
    series = {
        f'{TTFT}_bucket{{le="1"}}': "0+800x60",
        f'{TTFT}_bucket{{le="2.5"}}': "0+949x60",
        f'{TTFT}_bucket{{le="5"}}': "0+1000x60",
        f"{TTFT}_count": "0+1000x60",
    }
    text = slo("{sli: ttft, threshold: 2.5s, quantile: p95}")
    values = {("60m", record("bad:ratio1h")): [0.051], ("60m", record("budget_left:ratio")): [-0.02]}
    evaluate(tmp_path, text, series, values=values)


def test_one_event_is_one_event_however_it_is_extrapolated(tmp_path: Path) -> None:
    """One request, and it is bad: all of them are, not 1.25 of one."""
    series = {
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "10+0x60",
        f'{TTFT}_count{{instance="a"}}': "10 10 10 11+0x57",
        f'{TTFT}_bucket{{instance="zero",le="2.5"}}': "0+0x60",
        f'{TTFT}_count{{instance="zero"}}': "0 0 0 1+0x57",
    }
    text = slo("{sli: ttft, threshold: 2.5s, target: 95%}", group_by=["instance"])
    evaluate(tmp_path, text, series, values={("5m", record("bad:ratio5m")): [2]})


def test_a_series_of_errors_that_is_born_with_some_loses_none(tmp_path: Path) -> None:
    """600 requests an hour; at minute 45 a series of errors appears that has counted 5.

    That is 5 of 600, and 5 of 300 of the last half hour. On a target that is new itself they may be of any time, and do
    not count.
    """
    known = {
        f'{REQUESTS}{{instance="a"}}': "0+10x60",
        f'{ERRORS}{{instance="a"}}': "_x45 5+0x15",
        'up{instance="a"}': "1+0x60",
    }
    text = slo("{sli: availability, target: 99%}", engine="epp")
    values = {("60m", record("bad:ratio1h")): [round(5 / 600, 6)], ("60m", record("bad:ratio30m")): [round(5 / 300, 6)]}
    evaluate(tmp_path, text, known, values=values)
    new = {
        f'{REQUESTS}{{instance="a"}}': "_x45 9000+10x15",
        f'{ERRORS}{{instance="a"}}': "_x45 500+0x15",
        'up{instance="a"}': "_x45 1+0x15",
    }
    evaluate(tmp_path, text, new, values={("60m", record("bad:ratio30m")): [0]})


def test_the_first_errors_of_an_outage_count_among_all(tmp_path: Path) -> None:
    """The engine counts by status: from minute 30 on only 5xx, first seen at 10: 10 of 50 in 5 minutes."""
    series = {
        'http_requests_total{handler="/v1/x",status="2xx"}': "0+10x30 300+0x30",
        'http_requests_total{handler="/v1/x",status="5xx"}': "_x31 10+10x29",
        "up": "1+0x60",
    }
    text = slo("{sli: availability, target: 99%}")
    evaluate(tmp_path, text, series, values={("31m", "round(sum(cliffwatch_slo:bad:ratio5m), 0.1)"): [0.2]})


def test_a_rate_is_never_of_a_sum(tmp_path: Path) -> None:
    """`a` counts 20 events, then is gone; `b` goes on from 1000: their sum falls by a thousand: no reset."""
    series = {
        f'{TTFT}_count{{instance="a"}}': "1000 1010 1020 stale",
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "1000 1010 1020 stale",
        f'{TTFT}_count{{instance="b"}}': "1000+10x10",
        f'{TTFT}_bucket{{instance="b",le="2.5"}}': "1000+10x10",
    }
    text = slo("{sli: ttft, threshold: 2.5s, target: 95%}")
    values = {
        ("5m", "sum(cliffwatch_slo:events:rate5m * 300) < bool 80"): [1.0],
        ("5m", record("bad:ratio5m")): [0.0],
    }
    evaluate(tmp_path, text, series, values=values)


def test_a_small_slow_pod_weighs_as_its_requests(tmp_path: Path) -> None:
    """1000 a minute within 0.1 s on one pod, 5 a minute in (10, 20] on the other: 5 of 1005."""
    series = {
        f'{TTFT}_bucket{{instance="a",le="0.1"}}': "0+1000x60",
        f'{TTFT}_count{{instance="a"}}': "0+1000x60",
        f'{TTFT}_bucket{{instance="b",le="0.1"}}': "0+0x60",
        f'{TTFT}_count{{instance="b"}}': "0+5x60",
    }
    text = slo("{sli: ttft, threshold: 100ms, target: 99%}")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [round(5 / 1005, 6)]})


def test_beyond_the_last_edge_everything_is_bad(tmp_path: Path) -> None:
    """Old buckets end at 10 s, and everything took longer."""
    series = {f'{TTFT}_bucket{{le="10"}}': "0+0x60", f"{TTFT}_count": "0+100x60"}
    text = slo("{sli: ttft, threshold: 10s, target: 95%}", version="0.8.0")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [1]})


def test_more_good_than_all_is_no_negative_burn(tmp_path: Path) -> None:
    """A bucket may be read a moment later than the count of the same histogram."""
    series = {f'{TTFT}_bucket{{le="2.5"}}': "0+1001x60", f"{TTFT}_count": "0+1000x60"}
    text = slo("{sli: ttft, threshold: 2.5s, target: 95%}")
    values = {("60m", record("bad:ratio5m")): [0.0], ("60m", record("budget_left:ratio")): [1.0]}
    evaluate(tmp_path, text, series, values=values)


FINITE = 'count({__name__=~"cliffwatch_slo:.+"} < Inf > -Inf) - count({__name__=~"cliffwatch_slo:.+"})'


def test_ten_quiet_minutes_leave_every_record_a_number_and_the_budget_full(tmp_path: Path) -> None:
    """One request a second, all good, but for ten minutes without any: 0 / 0 for as long as a window is within them."""
    steady = "0+60x30 1800+0x10 1800+60x80"
    series = {f'{TTFT}_bucket{{le="2.5"}}': steady, f"{TTFT}_count": steady}
    values = {(f"{minute}m", FINITE): [0.0] for minute in (30, 37, 40, 41, 46, 120)}
    values |= {("38m", "cliffwatch_slo:bad:ratio5m"): [], ("120m", record("budget_left:ratio")): [1.0]}
    evaluate(tmp_path, slo("{sli: ttft, threshold: 2.5s, target: 99%}"), series, values=values)


def test_a_target_of_seven_nines_has_alerts_that_fire(tmp_path: Path) -> None:
    """14.4 times a budget of 0.00001 %: one of 100,000 bad is 100 budgets, and nothing is infinite."""
    on, bad = 1_000_000, 10
    series = {
        f'{TTFT}_bucket{{le="2.5"}}': f"0+{on}x70 {on * 70}+{on - bad}x50",
        f"{TTFT}_count": f"0+{on}x120",
    }
    values = {("120m", FINITE): [0.0], ("120m", "round(sum(cliffwatch_slo:bad:ratio5m) * 1e5, 0.01)"): [1.0]}
    alerts = {("70m", "SloBurn1h"): False, ("90m", "SloBurn1h"): True}
    evaluate(tmp_path, slo("{sli: ttft, threshold: 2.5s, target: 99.99999%}"), series, values=values, alerts=alerts)


def test_objectives_of_one_file_keep_their_records_apart(tmp_path: Path) -> None:
    """Three promises on one histogram, two of them to one target: each its own series (`evaluate` has them linted)."""
    objectives = ("threshold: 1s, target: 95%", "threshold: 2.5s, target: 99%", "threshold: 5s, target: 99%")
    document = {
        "name": "s",
        "objectives": [yaml.safe_load(f"{{sli: ttft, {one}}}") for one in objectives],
        "watch": {"engine": "vllm"},
    }
    series = {
        f'{TTFT}_bucket{{le="1.0"}}': "0+97x60",
        f'{TTFT}_bucket{{le="2.5"}}': "0+98x60",
        f'{TTFT}_bucket{{le="5.0"}}': "0+100x60",
        f"{TTFT}_count": "0+100x60",
    }
    left = {"ttft-1s-95pct": 0.4, "ttft-2.5s-99pct": -1.0, "ttft-5s-99pct": 1.0}  # 1 - 0.03 / 0.05, ...
    values = {("60m", record("budget_left:ratio", f'{{objective="{name}"}}')): [value] for name, value in left.items()}
    evaluate(tmp_path, yaml.safe_dump(document), series, values=values)


def test_all_events_and_those_within_an_edge_are_two_records(tmp_path: Path) -> None:
    """The edge as it is exposed and +Inf in one histogram: neither record has a label `le` or overwrites the other."""
    itl = "vllm:inter_token_latency_seconds"
    series = {
        f'{itl}_bucket{{le="0.05"}}': "0+80x60",
        f'{itl}_bucket{{le="1.0"}}': "0+95x60",
        f'{itl}_bucket{{le="+Inf"}}': "0+100x60",
        f"{itl}_count": "0+100x60",
    }
    values = {
        ("60m", "sum(cliffwatch_slo:events:rate5m * 60)"): [100.0],
        ("60m", "sum(cliffwatch_slo:bad:rate5m * 60)"): [20.0],
        ("60m", 'count({__name__=~"cliffwatch_slo:.+",le=~".+"})'): [],
    }
    evaluate(tmp_path, slo("{sli: itl, threshold: 50ms, target: 95%}", version="0.32.0"), series, values=values)


def test_a_restart_within_the_window_keeps_shares_between_nothing_and_all(tmp_path: Path) -> None:
    """Nothing is ever bad, one of two replicas restarts, and its bucket's last sample before that is a scrape older."""
    series = {
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "0+100x30 2+100x30",
        f'{TTFT}_count{{instance="a"}}': "0+100x30 1+100x30",
        f'{TTFT}_bucket{{instance="b",le="2.5"}}': "0.004+119.998x60",
        f'{TTFT}_count{{instance="b"}}': "0+119.998x60",
    }
    values = {(f"{minute}m", record("bad:ratio1h")): [0.0] for minute in (30, 31, 33, 60)}
    values |= {("33m", record("bad:ratio5m")): [0.0], ("60m", record("budget_left:ratio")): [1.0]}
    evaluate(tmp_path, slo("{sli: ttft, threshold: 2.5s, target: 99%}"), series, values=values)


def test_a_metric_that_was_not_switched_on_is_no_data_and_not_met(tmp_path: Path) -> None:
    """Triton without its histogram of first responses, with traffic: no ratio, no budget, and an alert that says so."""
    series = {
        'nv_inference_request_success{model="m"}': "0+100x60",
        'nv_inference_pending_request_count{model="m"}': "0x60",
    }
    text = slo("{sli: ttft, threshold: 500ms, target: 95%}", engine="triton")
    values: dict[tuple[str, str], list[float]] = {
        ("60m", "cliffwatch_slo:bad:ratio5m"): [],
        ("60m", "cliffwatch_slo:budget_left:ratio"): [],
    }
    evaluate(tmp_path, text, series, values=values, alerts={("60m", "SloBurn1h"): False})


def test_an_older_name_counts_where_the_new_one_is_not_and_never_twice(tmp_path: Path) -> None:
    """Before the rename, while both names are exposed, and after it: 100 events a minute on each, 10 of them bad."""
    new, old = "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"
    exposed = {"before": [old], "between": [new, old], "after": [new]}
    series = {
        f'{name}_{part}instance="{instance}"}}': f"0+{a_minute}x60"
        for instance, names in exposed.items()
        for name in names
        for part, a_minute in (('bucket{le="0.05",', 90), ("count{", 100))
    }
    text = slo("{sli: itl, threshold: 50ms, target: 95%}", group_by=["instance"])
    values = {
        ("60m", f'sum(cliffwatch_slo:{what}:rate5m{{instance="{instance}"}} * 60)'): [value]
        for instance in exposed
        for what, value in (("events", 100.0), ("bad", 10.0))
    }
    evaluate(tmp_path, text, series, values=values)


def test_tokens_of_prompts_are_no_throughput(tmp_path: Path) -> None:
    """SGLang counts both in one metric: 6000 tokens a second of prompts beside 300 generated, of 500 promised."""
    tokens = "sglang:realtime_tokens_total"
    series = {
        f'{tokens}{{mode="prefill_compute"}}': "0+360000x60",
        f'{tokens}{{mode="decode"}}': "0+18000x60",
        "sglang:num_running_reqs": "3x60",
    }
    text = slo("{sli: throughput, slices: {length: 5m, tokens_per_s: 500}, target: 99%}", engine="sglang")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio30m")): [1.0]})
