"""A backtest against Prometheus itself: promtool evaluates the compiled rules over the same samples, step by step."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from tests.servers.history import prometheus_with
from tests.servers.monitoring import tool
from tests.servers.processes import Server

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

MINUTE_S = 60
STEPS = 920
START_S = (int(time.time()) - 4 * 86_400) // 86_400 * 86_400
TTFT = "vllm:time_to_first_token_seconds"
SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 99%}
  - {sli: ttft, quantile: p95, threshold: 2.5s, slices: {length: 5m, min_events: 3}, target: 95%}
  - {sli: throughput, slices: {length: 10m, tokens_per_s: 15}, target: 90%}
watch:
  engine: vllm
  group_by: [instance]
  period: 2d
  composites:
    - {name: both, of: [ttft-2.5s-95pct-in-5m-95pct, throughput-15tps-in-10m-90pct], weights: [3, 1], target: 97%}
"""
# minutes from the start, and the share of bad events in them: outages of several sizes and a slow burn
OUTAGES = {(100, 130): 1.0, (300, 360): 0.5, (420, 600): 0.04, (840, 843): 1.0, (900, STEPS): 1.0}
FEW, NO_SCRAPE, IDLE = range(610, 700), range(710, 770), range(780, 830)
RESTARTS = {110, 320, 500, 842}


@dataclass(frozen=True)
class Past:
    """A server with the history, the SLO file, and the samples themselves."""

    server: Server
    slo: Path
    series: dict[str, list[float | None]]


def made(seed: int) -> tuple[list[float | None], list[float | None]]:
    """Counters of all events and of good ones, a minute each: restarts, gaps, idle and thin hours, outages."""
    rng = random.Random(seed)
    total = good = 0
    totals: list[float | None] = []
    goods: list[float | None] = []
    for minute in range(STEPS):
        if minute in RESTARTS and seed == 1:
            total = good = 0
        events = 0 if minute in IDLE else rng.randint(0, 1) if minute in FEW else rng.randint(60, 240)
        share = next((bad for (first, after), bad in OUTAGES.items() if first <= minute < after), 0.001)
        share = 0.3 if minute in FEW else share
        bad = sum(rng.random() < share for _ in range(events))
        total, good = total + events, good + events - bad
        totals.append(None if minute in NO_SCRAPE else float(total))
        goods.append(None if minute in NO_SCRAPE else float(good))
    return totals, goods


def working(instance: str, totals: list[float | None]) -> dict[str, list[float | None]]:
    """Ten tokens an event, and a request in the batch in each minute but the idle ones."""
    tokens = [None if total is None else 10 * total for total in totals]
    running = [None if total is None else float(minute not in IDLE) for minute, total in enumerate(totals)]
    labels = f'{{instance="{instance}"}}'
    return {f"vllm:generation_tokens_total{labels}": tokens, f"vllm:num_requests_running{labels}": running}


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    folder = tmp_path_factory.mktemp("past")
    (folder / "slo.yaml").write_text(SLO)
    series: dict[str, list[float | None]] = {}
    for seed, name in ((1, "a"), (2, "b")):
        totals, goods = made(seed)
        series[f'{TTFT}_count{{instance="{name}"}}'] = totals
        series[f'{TTFT}_bucket{{instance="{name}",le="2.5"}}'] = goods
        series |= working(name, totals)
    with prometheus_with(folder, series, start_s=START_S, step_s=MINUTE_S) as server:
        yield Past(server, folder / "slo.yaml", series)


def backtest(past: Past, *options: str) -> str:
    command = [sys.executable, "-m", "cliffwatch", "slo", "backtest", str(past.slo), "--prometheus", past.server.url]
    span = ["--from", str(START_S), "--to", str(START_S + (STEPS - 1) * MINUTE_S)]
    done = subprocess.run([*command, *span, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def minute(text: str) -> int:
    return round((time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone - START_S) / MINUTE_S)


def test_alerts_are_those_of_prometheus_to_the_evaluation(past: Past, tmp_path: Path) -> None:
    """promtool must find as many firing evaluations in all, and the same state on both sides of each start and end."""
    document = json.loads(backtest(past, "--json"))
    groups = {
        (objective["objective"], one["labels"]["instance"]): one
        for objective in (*document["objectives"], *document["composites"])
        for one in objective["groups"]
    }
    assert len(groups) == 8
    assert all(any(one["firings"] for (name, _), one in groups.items() if name == key) for key, _ in groups)
    (tmp_path / "rules.yml").write_text(rule_file(compile_rules(load_slo(past.slo))))
    asked: list[dict[str, Any]] = []

    def expect(at: int, expression: str, value: float) -> None:
        sample = {"labels": "{}", "value": value}
        asked.append({"expr": f"({expression}) or vector(0)", "eval_time": f"{at}m", "exp_samples": [sample]})

    for (objective, name), group in groups.items():
        left = f'cliffwatch_slo:budget_left:ratio{{objective="{objective}",instance="{name}"}}'
        for point in group["budget"]["curve"][50::100]:
            expect(minute(point["time"]), f"sum(abs({left} - {point['left_so_far']}) < bool 1e-9)", 1)
        for alert in ("SloBurn1h", "SloBurn6h", "SloBurn1d", "SloBurn3d"):
            firings = [one for one in group["firings"] if one["alert"] == alert]
            of = f'objective="{objective}",instance="{name}"'
            fired = f'ALERTS{{alertname="{alert}",{of},alertstate="firing"}}'
            ends = [(minute(one["start"]), minute(one["end"]) if one["end"] else STEPS) for one in firings]
            expect(STEPS - 1, f"sum(count_over_time({fired}[{STEPS}m]))", sum(end - start for start, end in ends))
            for start, end in ends:
                for at, state in ((start - 1, 0), (start, 1), (end - 1, 1), (end, 0)):
                    if at < STEPS:
                        expect(at, f"count({fired})", state)
    series = [
        {"series": name, "values": " ".join("_" if value is None else f"{value:g}" for value in values)}
        for name, values in past.series.items()
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": asked}
    order = [f"chat-{one['objective']}" for one in (*document["objectives"], *document["composites"])]
    suite = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "group_eval_order": order, "tests": [test]}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(suite))
    tool("promtool", "test", "rules", tmp_path / "tests.yml", folder=tmp_path)


def test_a_range_that_prometheus_refuses_is_halved_to_the_same_answer(past: Past, tmp_path: Path) -> None:
    """A server that may load 2,000 samples a query refuses the 5,240 instants that a span with its windows has."""
    with prometheus_with(tmp_path, past.series, start_s=START_S, step_s=MINUTE_S, max_samples=2_000) as server:
        whole = {"query": f"{TTFT}_count", "start": START_S, "end": START_S + STEPS * MINUTE_S, "step": 15}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{server.url}/api/v1/query_range?{urllib.parse.urlencode(whole)}")  # noqa: S310
        assert b"too many samples" in refused.value.read()
        assert backtest(replace(past, server=server), "--json") == backtest(past, "--json")


def test_incidents_and_other_cases_in_words(past: Past, tmp_path: Path) -> None:
    """Of two labelled incidents one was an outage, and in the other nothing happened."""
    labels = [("crash", *(START_S + at * MINUTE_S for at in (100, 130))), ("nothing", START_S + 300, START_S + 360)]
    rows = "".join(f"{start},{end},{name}\n" for name, start, end in labels)
    (tmp_path / "incidents.csv").write_text(f"start,end,name\n{rows}")
    curve = tmp_path / "curve.csv"
    options = ("--incidents", str(tmp_path / "incidents.csv"), "--targets", "99%,50%", "--match-within", "2m")
    words = backtest(past, *options, "--windows", "page:1h/5m:2%", "--csv", str(curve))
    assert "recall 50.0 % (1 of 2" in words
    assert "still fires" in words
    assert "unknown, the history is shorter than the period" in words
    assert "as written ≤ 2.5 s" in words
    rows_of_curve = curve.read_text().splitlines()
    assert len(rows_of_curve) == 1 + 8 * STEPS
    assert rows_of_curve[1].endswith(",no_data,,,")  # a rate needs two samples
