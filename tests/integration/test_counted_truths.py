"""Small inputs with which naive PromQL is wrong or silent, in promtool's hands: what the compiled rules must count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_compiled_rules import TTFT, evaluate, record, slo

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

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
