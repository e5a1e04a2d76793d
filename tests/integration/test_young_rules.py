"""Rules that were loaded a moment ago: few bad events page nobody, many do at once. By promtool, a minute a sample."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.test_compiled_rules import TTFT, Series, evaluate, record, slo

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

PROMISE = "{sli: ttft, threshold: 2.5s, target: 99.9%}"
BURNS = ("SloBurn1h", "SloBurn6h", "SloBurn1d", "SloBurn3d")
SLEEPING = {"exclude": {"sleeping": True}}  # so that every window over 5 minutes is made of records
COMPOSED = {"composites": [{"name": "both", "of": ["ttft-2.5s-99.9pct", "e2e-30s-99.9pct"], "target": "99.9%"}]}


def counters(metric: str, threshold: str, bad: str) -> Series:
    """4 requests a minute for four hours; `bad` of them miss, counted as a series of promtool's notation."""
    return {f"{metric}_count": "0+4x240", f'{metric}_bucket{{le="{threshold}"}}': bad}


ONE = "0+4x11 47+4x228"  # of the 48 requests of the first 12 minutes one is bad
ALL = "0+4x12 48x228"  # from minute 13 on


def silent(*minutes: int) -> dict[tuple[str, str], bool]:
    return {(f"{minute}m", name): False for minute in minutes for name in BURNS}


@pytest.mark.parametrize("watch", [{}, SLEEPING])
def test_one_failure_of_48_requests_fires_nothing(tmp_path: Path, watch: dict[str, object]) -> None:
    """A share of 2 % is 20 times the budget: at every age of the rules only the count holds the alerts back."""
    once = counters(TTFT, "2.5", ONE)
    evaluate(tmp_path, slo(PROMISE, **watch), once, alerts=silent(12, 13, 14, 16, 20, 40, 90, 200))


def test_one_failure_is_counted_as_one(tmp_path: Path) -> None:
    """Once 5 minutes have passed it, and still when it is long out of the hour that is counted from raw series."""
    asked = f"round({record('bad:count6h')}, 0.1)"
    values = {(f"{minute}m", asked): [1.0] for minute in (70, 90, 200)}
    evaluate(tmp_path, slo(PROMISE), counters(TTFT, "2.5", ONE), values=values)


def test_many_failures_fire_as_soon_as_there_are_five(tmp_path: Path) -> None:
    """4 a minute are bad: 4 in the first minute, 8 in the second."""
    alerts = silent(12, 13) | {("14m", name): True for name in BURNS}
    evaluate(tmp_path, slo(PROMISE), counters(TTFT, "2.5", ALL), alerts=alerts)


def test_made_of_records_alone_they_fire_within_five_minutes_more(tmp_path: Path) -> None:
    alerts = silent(12, 13) | {("19m", name): True for name in BURNS}
    evaluate(tmp_path, slo(PROMISE, **SLEEPING), counters(TTFT, "2.5", ALL), alerts=alerts)


def test_time_without_records_counts_nothing(tmp_path: Path) -> None:
    """One bad request, two hours in which nothing is scraped, and good ones again."""
    total = "0+4x40 _x120 160+4x80"
    good = "0+4x11 47+4x28 _x120 159+4x80"
    series = {f"{TTFT}_count": total, f'{TTFT}_bucket{{le="2.5"}}': good}
    evaluate(tmp_path, slo(PROMISE), series, alerts=silent(30, 162, 165, 170, 200))


def test_a_part_of_a_bad_slice_is_none(tmp_path: Path) -> None:
    """Two bad minutes, 13 and 14, are in the slices that end from minute 13 to 17: five evaluations, a whole slice."""
    sliced = "{sli: ttft, quantile: p95, threshold: 2.5s, slices: 5m, target: 99.9%}"
    twice = counters(TTFT, "2.5", "0+4x12 48x1 48+4x225")
    alerts = silent(12, 13, 14, 15, 16) | {("17m", name): True for name in BURNS}
    evaluate(tmp_path, slo(sliced), twice, alerts=alerts)


@pytest.mark.parametrize(("bad", "firing"), [(ONE, False), (ALL, True)])
def test_a_composite_counts_what_its_parts_do(tmp_path: Path, bad: str, firing: bool) -> None:
    """At the latest an evaluation after them: promtool keeps no order of groups."""
    objectives = [yaml.safe_load(PROMISE), {"sli": "e2e", "threshold": "30s", "target": "99.9%"}]
    text = yaml.safe_dump({"name": "s", "objectives": objectives, "watch": {"engine": "vllm", **COMPOSED}})
    series = counters(TTFT, "2.5", bad) | counters("vllm:e2e_request_latency_seconds", "30.0", "0+4x240")
    fires = 'count(ALERTS{alertname="SloBurn6h",objective="both",alertstate="firing"}) or vector(0)'
    values = {(f"{minute}m", fires): [float(firing)] for minute in (15, 20, 90)}
    evaluate(tmp_path, text, series, values=values)
