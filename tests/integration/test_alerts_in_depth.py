"""Alerts in Prometheus's own hands: what their reader is told, and alerts on what no ratio can show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import parse_slo
from tests.servers.monitoring import promtool

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

TTFT = "vllm:time_to_first_token_seconds"
DESCRIPTION = "Promised to 99 % of events over 30d; this burns the error budget 14.4 times too fast or more."
Series = dict[str, str]


def evaluate(
    folder: Path, watch: dict[str, Any], series: Series, alerts: dict[tuple[str, str], list[Any]], *, every: str = "1m"
) -> None:
    """Alerts by (time, name): the instances that fire, or its labels and annotations."""
    objective = {"sli": "ttft", "threshold": "2.5s", "target": "99%"}
    if watch["engine"] == "triton":
        objective = {"sli": "availability", "target": "99%"}
    text = yaml.safe_dump({"name": "s", "objectives": [objective], "watch": watch})
    (folder / "rules.yml").write_text(rule_file(compile_rules(parse_slo(text, source="s"))))
    promtool("check", "rules", "--lint=all", "--lint-fatal", folder / "rules.yml")
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count by (instance) (ALERTS{{alertname="{name}",alertstate="firing"}})',
                "eval_time": time,
                "exp_samples": [{"labels": f'{{instance="{one}"}}', "value": 1} for one in firing],
            }
            for (time, name), firing in alerts.items()
            if not any(isinstance(one, dict) for one in firing)
        ],
        "alert_rule_test": [
            {"eval_time": time, "alertname": name, "exp_alerts": firing}
            for (time, name), firing in alerts.items()
            if any(isinstance(one, dict) for one in firing)
        ],
    }
    document = {"rule_files": ["rules.yml"], "evaluation_interval": every, "tests": [test]}
    (folder / "tests.yml").write_text(yaml.safe_dump(document))
    promtool("test", "rules", folder / "tests.yml", folder=folder)


def test_a_page_tells_what_is_left_how_long_it_lasts_and_whose_it_is(tmp_path: Path) -> None:
    """Model m for an hour: 50 of 100 a minute bad, all of a's, none of b's; and another model that is well.

    The budget is 1 %: 1 - 0.5 / 0.01 is -4900 % left, which lasts no time. 50 a minute are 0.8333 a second.
    """
    series = {
        f'{TTFT}_count{{instance="a",model_name="m\\"x"}}': "0+50x60",
        f'{TTFT}_bucket{{instance="a",model_name="m\\"x",le="2.5"}}': "0+0x60",
        f'{TTFT}_count{{instance="b",model_name="m\\"x"}}': "0+50x60",
        f'{TTFT}_bucket{{instance="b",model_name="m\\"x",le="2.5"}}': "0+50x60",
        f'{TTFT}_count{{instance="a",model_name="well"}}': "0+50x60",
        f'{TTFT}_bucket{{instance="a",model_name="well",le="2.5"}}': "0+50x60",
    }
    alert = {
        "exp_labels": {"severity": "page", "slo": "s", "objective": "ttft-2.5s-99pct", "model_name": 'm"x'},
        "exp_annotations": {
            "summary": 's (model_name m"x): TTFT ≤ 2.5 s missed by 50% of the last 1h',
            "description": DESCRIPTION,
            "budget_left": "-4900%",
            "budget_lasts": "0s at the burn of the last 1h",
            "contributors": "most bad events of the last 5m: a 833.3m/s",
            "runbook_url": "https://wiki.example/slo/SloBurn1h",
        },
    }
    watch = {"engine": "vllm", "group_by": ["model_name"], "runbooks": "https://wiki.example/slo/"}
    evaluate(tmp_path, watch, series, {("60m", "SloBurn1h"): [alert]})


def test_how_long_a_budget_lasts_is_told_at_the_present_burn(tmp_path: Path) -> None:
    """48 clean hours, then one with 20 % bad: 0.2 / 49 of 1 %, so that 59.18 % are left.

    1 % of 30 days is 7.2 h of everything being bad, 36 h at 20 %; 59.18 % of these are 21 h 18 min 22 s.
    """
    series = {
        f'{TTFT}_count{{instance="a"}}': "0+100x2940",
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "0+100x2880 288080+80x59",
    }
    alert = {
        "exp_labels": {"severity": "page", "slo": "s", "objective": "ttft-2.5s-99pct"},
        "exp_annotations": {
            "summary": "s: TTFT ≤ 2.5 s missed by 20% of the last 1h",
            "description": DESCRIPTION,
            "budget_left": "59.18%",
            "budget_lasts": "21h 18m 22s at the burn of the last 1h",
            "contributors": "most bad events of the last 5m: a  333.3m/s",
        },
    }
    evaluate(tmp_path, {"engine": "vllm"}, series, {("2940m", "SloBurn1h"): [alert]}, every="5m")


def test_an_engine_that_stands_still_while_others_work(tmp_path: Path) -> None:
    """`stale` is up and does nothing; `down` does nothing either, and is told by EngineDown."""
    tokens = "vllm:generation_tokens_total"
    series = {
        f'{tokens}{{instance="busy"}}': "0+100x60",
        f'{tokens}{{instance="stale"}}': "0+100x10 1000+0x50",
        f'{tokens}{{instance="down"}}': "0+100x10 1000+0x50",
        'up{instance="busy"}': "1+0x60",
        'up{instance="stale"}': "1+0x60",
        'up{instance="down"}': "0+0x60",
    }
    alerts = {("42m", "EngineStale"): [], ("50m", "EngineStale"): ["stale"], ("50m", "EngineDown"): ["down"]}
    evaluate(tmp_path, {"engine": "vllm"}, series, alerts)


def test_a_fleet_without_traffic_is_not_stale(tmp_path: Path) -> None:
    series = {'vllm:generation_tokens_total{instance="a"}': "5+0x60", 'up{instance="a"}': "1+0x60"}
    evaluate(tmp_path, {"engine": "vllm"}, series, {("60m", "EngineStale"): []})


def test_a_storm_of_aborts(tmp_path: Path) -> None:
    """`a`: 3 of 10 a minute are left; `few`: all, but only 5 in ten minutes; `well`: 1 of 10. No abort at first."""
    failure, success = "nv_inference_request_failure", "nv_inference_request_success"
    series = {
        f'{success}{{instance="a"}}': "0+7x40",
        f'{failure}{{instance="a",reason="CANCELED"}}': "0+0x20 3+3x19",
        f'{failure}{{instance="a",reason="BACKEND"}}': "0+7x40",
        f'{failure}{{instance="few",reason="CANCELED"}}': "0+0x35 1+1x4",
        f'{success}{{instance="well"}}': "0+9x40",
        f'{failure}{{instance="well",reason="CANCELED"}}': "0+1x40",
    }
    alerts = {("20m", "EngineAbortStorm"): [], ("40m", "EngineAbortStorm"): ["a"]}
    evaluate(tmp_path, {"engine": "triton"}, series, alerts)


def test_restarts_are_told_from_one_restart(tmp_path: Path) -> None:
    started = "process_start_time_seconds"
    series = {f'{started}{{instance="once"}}': "1x10 2x20", f'{started}{{instance="often"}}': "1x10 2x3 3x3 4x14"}
    evaluate(tmp_path, {"engine": "vllm"}, series, {("20m", "EngineRestarts"): ["often"]})
