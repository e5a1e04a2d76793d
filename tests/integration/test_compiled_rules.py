"""Compiled rules in Prometheus's own hands: promtool evaluates them over made series whose right answers are known.

Small inputs for which naive PromQL is silent or wrong; the right values are worked out in each test.
"""

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
Series = dict[str, str]


def slo(objective: str, **watch: object) -> str:
    section = {"engine": "vllm", **watch}
    return yaml.safe_dump({"name": "s", "objectives": [yaml.safe_load(objective)], "watch": section})


def evaluate(
    folder: Path,
    text: str,
    series: Series,
    *,
    values: dict[tuple[str, str], list[float]] | None = None,
    alerts: dict[tuple[str, str], bool] | None = None,
    newest_only: bool = False,
) -> None:
    """Check records (`(time, expression)`: values, none for no sample) and alerts (`(time, name)`: firing or not).

    `newest_only`: see `promtool`.
    """
    compiled = compile_rules(parse_slo(text, source="s"))
    (folder / "rules.yml").write_text(rule_file(compiled))
    promtool("check", "rules", "--lint=all", "--lint-fatal", folder / "rules.yml")
    rules = {rule["alert"]: rule for group in compiled.groups for rule in group["rules"] if "alert" in rule}
    fired = alerts or {}
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": points} for name, points in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({expression}, 1e-6)",
                "eval_time": time,
                "exp_samples": [{"labels": "{}", "value": value} for value in wanted],
            }
            for (time, expression), wanted in (values or {}).items()
        ]
        + [
            {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                "eval_time": time,
                "exp_samples": [{"labels": "{}", "value": float(firing)}],
            }
            for (time, name), firing in fired.items()
        ],
    }
    assert {name for _, name in fired} <= set(rules)
    (folder / "tests.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]})
    )
    promtool("test", "rules", folder / "tests.yml", folder=folder, newest_only=newest_only)


def record(name: str, labels: str = "") -> str:
    """A record without its labels."""
    return f"sum(cliffwatch_slo:{name}{labels})"


def test_edges_count_however_they_are_spelt(tmp_path: Path) -> None:
    """A Go server writes 5, a Python one 5.0; 10 % of 100 a minute miss on each, and 0.5 and 50 are other edges."""
    series = {
        f'{TTFT}_bucket{{instance="go",le="5"}}': "0+90x60",
        f'{TTFT}_bucket{{instance="go",le="0.5"}}': "0+10x60",
        f'{TTFT}_count{{instance="go"}}': "0+100x60",
        f'{TTFT}_bucket{{instance="py",le="5.0"}}': "0+90x60",
        f'{TTFT}_bucket{{instance="py",le="50.0"}}': "0+100x60",
        f'{TTFT}_count{{instance="py"}}': "0+100x60",
    }
    for group_by, ratios in ((["instance"], 2 * 0.1), ([], 0.1)):
        text = slo("{sli: ttft, threshold: 5s, target: 95%}", group_by=group_by)
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [ratios]})


def test_idle_hours_are_neither_good_nor_bad_and_leave_no_nan(tmp_path: Path) -> None:
    series = {f'{TTFT}_bucket{{le="2.5"}}': "900+0x120", f"{TTFT}_count": "1000+0x120"}
    nothing: list[float] = []
    evaluate(
        tmp_path,
        slo("{sli: ttft, threshold: 2.5s, target: 95%}"),
        series,
        values={
            ("60m", record("events:rate5m")): [0],
            ("60m", "cliffwatch_slo:bad:ratio5m"): nothing,
            ("120m", "cliffwatch_slo:bad:ratio1d"): nothing,
            ("120m", "cliffwatch_slo:budget_left:ratio"): nothing,
        },
        alerts={("120m", "SloBurn1h"): False, ("120m", "SloBurn3d"): False},
    )


def test_idle_time_does_not_poison_what_came_before_and_after(tmp_path: Path) -> None:
    """1 of 10 a minute bad, an idle hour, the same again: 10 % bad, which a target of 90 % allows exactly."""
    on, off = "0+{}x60", "{}+0x60"
    total = f"{on.format(10)} {off.format(600)} 600+10x60"
    good = f"{on.format(9)} {off.format(540)} 540+9x60"
    evaluate(
        tmp_path,
        slo("{sli: ttft, threshold: 2.5s, target: 90%}"),
        {f'{TTFT}_bucket{{le="2.5"}}': good, f"{TTFT}_count": total},
        values={("180m", record("bad:ratio6h")): [0.1], ("180m", record("budget_left:ratio")): [0]},
    )


def test_events_weigh_alike_in_quiet_and_busy_hours(tmp_path: Path) -> None:
    """An hour at 1 a minute, all bad, then an hour at 999 a minute, all good: 60 of 60,000, not half."""
    total = "1000+1x60 1060+999x60"
    good = "1000+0x60 1000+999x60"
    evaluate(
        tmp_path,
        slo("{sli: ttft, threshold: 2.5s, target: 99%}"),
        {f'{TTFT}_bucket{{le="2.5"}}': good, f"{TTFT}_count": total},
        values={("120m", "round(sum(cliffwatch_slo:bad:ratio6h), 0.0002)"): [0.001]},
    )


def test_no_bad_series_is_no_error(tmp_path: Path) -> None:
    """A server that never answered 5xx exposes no such series."""
    series = {'http_requests_total{handler="/v1/completions",status="2xx",instance="a"}': "0+100x60"}
    evaluate(
        tmp_path,
        slo("{sli: availability, target: 99.9%}", group_by=["instance"]),
        series,
        values={("60m", record("bad:ratio1h")): [0], ("60m", record("budget_left:ratio")): [1]},
    )


def test_a_counter_that_starts_again_is_no_loss(tmp_path: Path) -> None:
    """Both restart in the middle; 10 % bad before and after."""
    series = {f'{TTFT}_bucket{{le="2.5"}}': "0+90x30 0+90x30", f"{TTFT}_count": "0+100x30 0+100x30"}
    text = slo("{sli: ttft, threshold: 2.5s, target: 95%}")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio1h")): [0.1]})


def test_a_rolling_upgrade_mixes_two_layouts(tmp_path: Path) -> None:
    """The old pod ends at 10 s and has everything under it; the new one has everything in (20, 40].

    Within 20 s: all of the old pod's, none of the new one's: half. Naive `le="20"` finds none of the old pod's.
    """
    series = {
        f'{TTFT}_bucket{{instance="old",le="10.0"}}': "0+100x60",
        f'{TTFT}_count{{instance="old"}}': "0+100x60",
        f'{TTFT}_bucket{{instance="new",le="10.0"}}': "0+0x60",
        f'{TTFT}_bucket{{instance="new",le="20.0"}}': "0+0x60",
        f'{TTFT}_bucket{{instance="new",le="40.0"}}': "0+100x60",
        f'{TTFT}_count{{instance="new"}}': "0+100x60",
    }
    for threshold, bad in ((20, 0.5), (40, 0.0)):
        text = slo(f"{{sli: ttft, threshold: {threshold}s, target: 95%}}")
        evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [bad]})


def test_answers_of_one_token_have_no_tpot(tmp_path: Path) -> None:
    """50 a minute of one token, recorded as 0, and 50 that all take 0.2 s: within 50 ms are none, not half."""
    tpot = "vllm:request_time_per_output_token_seconds"
    series = {
        f'{tpot}_bucket{{le="0.05"}}': "0+50x60",
        f"{tpot}_count": "0+100x60",
        'vllm:request_generation_tokens_bucket{le="1.0"}': "0+50x60",
    }
    text = slo("{sli: tpot, threshold: 50ms, target: 99%}")
    evaluate(tmp_path, text, series, values={("60m", record("bad:ratio5m")): [1]})


def test_five_requests_an_hour_page_nobody(tmp_path: Path) -> None:
    """One of five is bad, 200 times the budget; with as many as the file asks for, it does page."""
    one = {f'{TTFT}_bucket{{le="2.5"}}': "0x57 0+1x3", f"{TTFT}_count": "0x55 0+1x5"}
    few = "{sli: ttft, threshold: 2.5s, target: 99.9%}"
    evaluate(tmp_path, slo(few), one, alerts={("60m", "SloBurn1h"): False})
    evaluate(tmp_path, slo(few, min_bad_events=1), one, alerts={("60m", "SloBurn1h"): True})


BURN = "{sli: ttft, threshold: 2.5s, target: 99.9%}"


def burning(bad_a_minute: int, of: int = 10_000, clean: int = 120, minutes: int = 200) -> Series:
    """Two clean hours, then so many bad of so many a minute."""
    good = of - bad_a_minute
    total = f"0+{of}x{clean + minutes}"
    return {
        f'{TTFT}_bucket{{le="2.5"}}': f"0+{of}x{clean} {of * clean + good}+{good}x{minutes}",
        f"{TTFT}_count": total,
    }


def test_an_outage_pages_within_a_minute(tmp_path: Path) -> None:
    """0.0144 of an hour is 52 s: at the first evaluation after it."""
    firing = {("121m", "SloBurn1h"): True, ("120m", "SloBurn1h"): False}
    evaluate(tmp_path, slo(BURN), burning(10_000), alerts=firing)


def test_two_per_cent_bad_page_after_44_minutes(tmp_path: Path) -> None:
    """0.0144 / 0.02 of an hour is 43.2 minutes."""
    firing = {("162m", "SloBurn1h"): False, ("164m", "SloBurn1h"): True}
    evaluate(tmp_path, slo(BURN), burning(200), alerts=firing)


def test_1_4_per_cent_bad_never_page_fast_but_slowly(tmp_path: Path) -> None:
    """Under 0.0144 for ever; 0.006 of 6 h at 0.014 is 154 minutes, of records that lag by half of 5 minutes."""
    alerts = {
        ("300m", "SloBurn1h"): False,
        ("320m", "SloBurn1h"): False,
    }
    evaluate(tmp_path, slo(BURN), burning(140, clean=360, minutes=300), alerts={("600m", "SloBurn1h"): False})
    evaluate(
        tmp_path,
        slo(BURN),
        burning(140, clean=360, minutes=300),
        alerts={("510m", "SloBurn6h"): False, ("520m", "SloBurn6h"): True} | alerts,
    )


def test_a_long_past_burst_is_no_alert(tmp_path: Path) -> None:
    """Ten bad minutes that ended most of an hour ago: the long window still burns, the short one is clean."""
    total = "0+10000x240"
    good = "0+10000x120 1200000+0x10 1200000+10000x110"
    evaluate(
        tmp_path,
        slo(BURN),
        {f'{TTFT}_bucket{{le="2.5"}}': good, f"{TTFT}_count": total},
        values={("170m", "sum(cliffwatch_slo:bad:ratio1h > bool 0.0144)"): [1]},
        alerts={("130m", "SloBurn1h"): True, ("170m", "SloBurn1h"): False},
    )


def test_at_90_per_cent_an_outage_still_pages(tmp_path: Path) -> None:
    """14.4 times 10 % is more than everything; half of the events bad over an hour is what fires, after 30 minutes."""
    text = slo("{sli: ttft, threshold: 2.5s, target: 90%}")
    alerts = {("149m", "SloBurn1h"): False, ("152m", "SloBurn1h"): True}
    evaluate(tmp_path, text, burning(10_000), alerts=alerts)


def test_a_hung_engine_pages_where_every_ratio_is_silent(tmp_path: Path) -> None:
    series = {
        'vllm:num_requests_running{instance="a"}': "3x60",
        'vllm:generation_tokens_total{instance="a"}': "0+500x30 15000x30",
        f'{TTFT}_bucket{{instance="a",le="2.5"}}': "0+10x30 300x30",
        f'{TTFT}_count{{instance="a"}}': "0+10x30 300x30",
    }
    alerts = {("30m", "EngineHung"): False, ("36m", "EngineHung"): True, ("60m", "SloBurn1h"): False}
    evaluate(tmp_path, slo(BURN), series, alerts=alerts)


def test_missing_metrics_are_told(tmp_path: Path) -> None:
    alerts = {("4m", "EngineMetricsAbsent"): False, ("6m", "EngineMetricsAbsent"): True}
    evaluate(tmp_path, slo(BURN), {"other": "1x10"}, alerts=alerts)
