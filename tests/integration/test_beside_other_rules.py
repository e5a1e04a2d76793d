"""Our rules and those that the SRE Workbook and Sloth would have, over the same series, in promtool's hands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_compiled_rules import BURN, TTFT, burning, evaluate, record, slo

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]


def ratio(window: str) -> str:
    """A window's share of bad events as it is written by hand."""
    count, good = (f"sum(rate({TTFT}_{part}[{window}]))" for part in ("count", 'bucket{le="2.5"}'))
    return f"(({count} - {good}) / {count})"


def pair(long: str, short: str, factor: float) -> str:
    return f"({ratio(long)} > {factor} * 0.001 and {ratio(short)} > {factor} * 0.001)"


WORKBOOKS_PAGE = f"({pair('1h', '5m', 14.4)} or {pair('6h', '30m', 6)})"
OUR_PAGE = 'ALERTS{severity="page",alertname=~"SloBurn.+",alertstate="firing"}'
AVERAGED = f"avg_over_time({ratio('5m')}[1h:1m])"  # Sloth's optimised rule, over a shorter period


@pytest.mark.parametrize(
    ("bad", "after"),
    [(100, 10**6), (200, 44), (500, 18), (2_000, 5), (10_000, 1)],  # of 10,000; minutes; 1 % not within this hour
)
def test_pages_come_at_the_same_minute_as_the_workbooks(tmp_path: Path, bad: int, after: int) -> None:
    """0.0144 of an hour over the bad share is 43.2, 17.3, 4.3 and 0.9 minutes: the evaluation after that.

    A window of Prometheus 3 holds 59 of the hour's 60 steps, so that both may fire one minute before, at once.
    """
    clean = 360
    minutes = range(61)
    firing = {page: f"((count({page}) or vector(0)) > bool 0)" for page in (WORKBOOKS_PAGE, OUR_PAGE)}
    values = {
        (f"{clean + minute}m", expression): [float(minute >= after)]
        for minute in minutes
        if minute != after - 1 or minute == 0
        for expression in firing.values()
    }
    alike = " == bool ".join(firing.values())
    values |= {(f"{clean + minute}m", alike): [1.0] for minute in minutes}
    evaluate(tmp_path, slo(BURN), burning(bad, clean=clean, minutes=60), values=values)


def test_a_quiet_bad_half_hour_is_its_events_and_not_half_of_the_time(tmp_path: Path) -> None:
    """30 of 30,000 events are bad. The mean of 5-minute ratios is the share of time: half, here 0.52."""
    series = {
        f'{TTFT}_bucket{{le="2.5"}}': "1000+0x30 1000+999x30",
        f"{TTFT}_count": "1000+1x30 1030+999x30",
    }
    values = {
        ("61m", f"round({AVERAGED}, 0.05)"): [0.5],
        ("61m", "round(sum(cliffwatch_slo:bad:ratio1h), 0.0005)"): [0.001],
        ("61m", f"{AVERAGED} > bool 400 * sum(cliffwatch_slo:bad:ratio1h)"): [1.0],
    }
    evaluate(tmp_path, slo("{sli: ttft, threshold: 2.5s, target: 99%}"), series, values=values)


def test_one_idle_window_leaves_no_mean_of_ratios_but_a_budget(tmp_path: Path) -> None:
    """1 of 10 a minute bad, ten idle minutes, the same again: 10 % of events, where the mean of ratios is NaN."""
    series = {
        f'{TTFT}_bucket{{le="2.5"}}': "0+9x30 270+0x10 270+9x30",
        f"{TTFT}_count": "0+10x30 300+0x10 300+10x30",
    }
    mean = AVERAGED
    values = {
        ("70m", f"{mean} != bool {mean}"): [1.0],  # only NaN is not itself
        ("70m", record("bad:ratio6h")): [0.1],
        ("70m", record("budget_left:ratio")): [0.0],
    }
    evaluate(tmp_path, slo("{sli: ttft, threshold: 2.5s, target: 90%}"), series, values=values)
