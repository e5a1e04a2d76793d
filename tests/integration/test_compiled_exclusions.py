"""Exclusions and calendars in Prometheus's own hands; promtool's clock starts on Thursday, 1 January 1970, at 00:00."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import parse_slo
from tests.integration.test_compiled_rules import TTFT, evaluate, record, slo
from tests.servers.monitoring import tool

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

OBJECTIVE = "{sli: ttft, threshold: 2.5s, target: 99%}"
# From 60 to 90 all are bad; else none of 100 a minute.
OUTAGE = {f'{TTFT}_bucket{{le="2.5"}}': "0+100x60 6000x29 6000+100x90", f"{TTFT}_count": "0+100x180"}


@pytest.mark.parametrize(
    "window",
    [{"start": "1970-01-01T01:00:00Z", "end": "1970-01-01T01:30:00Z"}, {"weekly": "thu 01:00-01:30"}],
)
def test_maintenance_is_in_neither_side(tmp_path: Path, window: dict[str, str]) -> None:
    """The outage is all in maintenance: no bad event, no alert, and 30 minutes without any event.

    Of the hour until 119, 35 of 60 evaluations (01:00 to 01:34) count nothing, the others 100 a minute.
    """
    text = slo(OBJECTIVE, exclude={"maintenance": [window]})
    values = {
        ("120m", record("bad:ratio30d")): [0.0],
        ("75m", record("events:rate5m")): [0.0],
        ("75m", "cliffwatch_slo:bad:ratio5m"): [],
        ("96m", record("events:rate5m")): [round(100 / 60, 6)],
        ("119m", record("events:rate1h")): [round(100 / 60 * 25 / 60, 6)],
    }
    quiet = {("90m", "SloBurn1h"): False, ("120m", "SloBurn1h"): False}
    evaluate(tmp_path, text, OUTAGE, values=values, alerts=quiet, newest_only=True)
    evaluate(tmp_path, slo(OBJECTIVE), OUTAGE, alerts={("90m", "SloBurn1h"): True})


def test_a_slice_that_reaches_into_maintenance_does_not_count(tmp_path: Path) -> None:
    sliced = "{sli: ttft, threshold: 2.5s, slices: {length: 10m, share: 95%}, target: 99%}"
    window = {"start": "1970-01-01T01:00:00Z", "end": "1970-01-01T01:30:00Z"}
    values: dict[tuple[str, str], list[float]] = {
        ("99m", "cliffwatch_slo:bad:ratio5m"): [],
        ("100m", record("bad:ratio5m")): [0.0],
        ("120m", record("bad:ratio30d")): [0.0],
    }
    evaluate(tmp_path, slo(sliced, exclude={"maintenance": [window]}), OUTAGE, values=values, newest_only=True)


def test_load_tests_are_left_out_by_their_label(tmp_path: Path) -> None:
    """A load test of 900 a minute, all bad, beside 100 a minute of which 2 are; series without the label stay in."""
    series = {
        f'{TTFT}_bucket{{le="2.5"}}': "0+98x60",
        f"{TTFT}_count": "0+100x60",
        f'{TTFT}_bucket{{le="2.5",run="r.1"}}': "0x60",
        f'{TTFT}_count{{run="r.1"}}': "0+900x60",
    }
    for labels, ratio in (({"run": ["r.1", "r.2"]}, 0.02), ({"run": ["r"]}, 0.902)):
        text = slo(OBJECTIVE, target_labels=["run"], exclude={"labels": labels})
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio1h")): [ratio]})


def test_an_engine_that_sleeps_is_left_out_while_it_does(tmp_path: Path) -> None:
    """Engine a is good; b has slept since the start, and what still reaches it is bad."""
    series = {
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "0+100x60",
        f'{TTFT}_count{{instance="a"}}': "0+100x60",
        f'{TTFT}_bucket{{instance="b",le="2.5"}}': "0x60",
        f'{TTFT}_count{{instance="b"}}': "0+100x60",
        'vllm:engine_sleep_state{instance="a",sleep_state="awake"}': "1x60",
        'vllm:engine_sleep_state{instance="b",sleep_state="awake"}': "0x60",
        'vllm:engine_sleep_state{instance="b",sleep_state="weights_offloaded"}': "1x60",
    }
    for sleeping, ratio in ((True, 0.0), (False, 0.5)):
        text = slo(OBJECTIVE, exclude={"sleeping": sleeping})
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio30m")): [ratio]})


@pytest.mark.parametrize(("calendar", "days"), [("week", 4), ("month", 31), ("quarter", 90)])
def test_a_budget_begins_anew_at_the_turn_of_its_period(tmp_path: Path, calendar: str, days: int) -> None:
    """2 % bad in the old period, then 20 steps clean, then 20 with 10 % bad: 5 % of the new one, of 1 % allowed.

    The records of 5 minutes are given, 3 hours apart, so that only what is made of them is evaluated.
    """
    compiled = compile_rules(parse_slo(slo(OBJECTIVE, calendar=calendar), source="s"))
    of_period = (f":rate5m_{calendar}", f":ratio{calendar}", "budget_left:ratio")
    rules = [rule for rule in compiled.groups[0]["rules"] if rule.get("record", "").endswith(of_period)]
    assert len(rules) == 4
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    labels = '{slo="s",objective="ttft-2.5s-99pct"}'

    turn = days * 24 // 3

    def shown(step: int, name: str, value: float) -> dict[str, Any]:
        expression = f"round(sum(cliffwatch_slo:{name}), 1e-6)"
        return {"expr": expression, "eval_time": f"{3 * step}h", "exp_samples": [{"labels": "{}", "value": value}]}

    test = {
        "interval": "3h",
        "input_series": [
            {"series": f"cliffwatch_slo:events:rate5m{labels}", "values": f"1x{turn + 40}"},
            {"series": f"cliffwatch_slo:bad:rate5m{labels}", "values": f"0.02x{turn - 1} 0x19 0.1x20"},
        ],
        "promql_expr_test": [
            shown(turn - 1, f"bad:ratio{calendar}", 0.02),
            shown(turn - 1, "budget_left:ratio", -1),
            shown(turn, "budget_left:ratio", 1),
            shown(turn + 19, f"bad:ratio{calendar}", 0),
            shown(turn + 39, f"bad:ratio{calendar}", 0.05),
            shown(turn + 39, "budget_left:ratio", -4),
        ],
    }
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "3h", "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    tool("promtool", "test", "rules", tmp_path / "tests.yml", folder=tmp_path)
