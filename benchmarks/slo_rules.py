"""Compiled rules evaluated by a real Prometheus over 100 engines and a past: how much of their interval it takes.

    python -m benchmarks.slo_rules

Every SLO file has a latency, an availability and a time-slice objective, in a budget an instance. The past holds the
records that the rules read over days, and an hour of the engines' own series, a sample a minute; groups are evaluated
every 15 s so that there are several durations, and held against the minute at which the records stand. Where `firing`,
every event of every engine is bad, so that all alerts fire and fill their texts by queries of their own.

Told are the longest group, the sum of all (which Prometheus evaluates side by side, so that they wait for each other's
cores), and what Prometheus's process spent of CPU a round. Saves benchmarks/results/slo_rules.json. Goal: the longest
group, and the CPU time of a round, under 10 % of the interval.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._saved import conclude
from benchmarks.slo_compile import TEXT
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import parse_slo
from tests.servers.history import prometheus_with
from tests.servers.processes import Server, get_text

GOAL = 0.1
ENGINES, STEP_S, EVERY_S, ROUNDS = 100, 60, 15, 6
DAY_STEPS, HOUR_STEPS = 1_440, 60
CASES = ((1, 7, False), (5, 1, False), (1, 1, True))  # files, days, firing
_DURATION = re.compile(r"^prometheus_rule_group_last_duration_seconds\{.*\} (\S+)$", re.MULTILINE)
_CPU = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)
_FAILURES = re.compile(r"^prometheus_rule_evaluation_failures_total\{.*\} (\S+)$", re.MULTILINE)
_COUNTERS = (
    "vllm:time_to_first_token_seconds_count{{{}}}", 'vllm:time_to_first_token_seconds_bucket{{{},le="2.5"}}',
    "vllm:e2e_request_latency_seconds_count{{{}}}", 'vllm:e2e_request_latency_seconds_bucket{{{},le="30.0"}}',
    'http_requests_total{{{},handler="/v1/chat/completions",status="2xx"}}',
)  # fmt: skip


def write_rules(folder: Path, files: int) -> tuple[int, dict[str, str]]:
    """Compile so many files: their rules, and by record that is read over days the labels it has beside `instance`."""
    count, records = 0, {}
    for number in range(files):
        compiled = compile_rules(parse_slo(TEXT.format(number=number), source=f"{number}.yaml"))
        count += sum(len(group["rules"]) for group in compiled.groups)
        text = rule_file(compiled)
        (folder / f"{number}.rules.yml").write_text(text)
        for found in re.finditer(r"(cliffwatch_slo:\w+:\w+)\{([^}]*)\}\[\d+d\]", text):
            records[f"{found[1]}{{{found[2]}}}"] = f"team-{number}"
    return count, records


def past(records: dict[str, str], days: int, *, firing: bool) -> dict[str, list[float | None]]:
    """Each record over `days` for each engine, and each engine's own counters over the last hour."""
    steps, bad = days * DAY_STEPS, 1.0 if firing else 1e-4
    series: dict[str, list[float | None]] = {}
    for engine in range(ENGINES):
        rng = random.Random(engine)  # noqa: S311  traffic, no secret
        instance = f'instance="10.0.0.{engine}:8000"'
        for record in records:
            scale = bad if ":bad:" in record else 1.0
            series[f"{record[:-1]},{instance}}}"] = [round(rng.uniform(0.9, 1.0) * scale, 7) for _ in range(steps)]
        nothing: list[float | None] = [None] * (steps - HOUR_STEPS)
        for team in set(records.values()):
            for counter in _COUNTERS:
                labels = f'job="{team}",model_name="m",engine="0",{instance}'
                grown = 0 if firing and "_bucket" in counter else 50
                series[counter.format(labels)] = [*nothing, *(float(at * grown + engine) for at in range(HOUR_STEPS))]
    return series


def durations(server: Server, groups: int) -> dict[str, float]:
    """Over `ROUNDS` evaluations of every group: the longest group, the largest sum, CPU seconds a round."""
    longest: list[float] = []
    sums: list[float] = []
    cpu: list[float] = []
    while len(sums) < ROUNDS:
        time.sleep(EVERY_S)
        page = get_text(f"{server.url}/metrics")
        values = [float(text) for text in _DURATION.findall(page)]
        if len(values) == groups and all(values):
            longest.append(max(values))
            sums.append(sum(values))
            cpu += [float(text) for text in _CPU.findall(page)]
    assert not any(float(text) for text in _FAILURES.findall(page)), "a rule failed: nothing was measured"
    a_round = (cpu[-1] - cpu[0]) / (ROUNDS - 1)
    figures = {"longest_group_s": max(longest), "median_sum_s": statistics.median(sums), "max_sum_s": max(sums)}
    return {"n": ROUNDS, **{name: round(value, 3) for name, value in {**figures, "cpu_a_round_s": a_round}.items()}}


def measure(folder: Path, files: int, days: int, *, firing: bool) -> dict[str, float]:
    """One case in a Prometheus of its own."""
    rules, records = write_rules(folder, files)
    series = past(records, days, firing=firing)
    configured = {"global": {"evaluation_interval": f"{EVERY_S}s"}, "rule_files": [str(folder / "*.rules.yml")]}
    start_s = int(time.time()) - days * DAY_STEPS * STEP_S
    groups = sum((folder / f"{number}.rules.yml").read_text().count("\n- name:") for number in range(files))
    size = {"files": files, "objectives": 3 * files, "rules": rules, "groups": groups, "engines": ENGINES}
    held = {"days": days, "records": len(records) * ENGINES, "samples": len(records) * ENGINES * days * DAY_STEPS}
    print(f"{size} {held}: writing the past", file=sys.stderr)
    with prometheus_with(folder, series, start_s=start_s, step_s=STEP_S, keep_days=90, configured=configured) as server:
        found = durations(server, groups)
    share = max(found["longest_group_s"], found["cpu_a_round_s"]) / STEP_S
    return {**size, **held, "firing": firing, **found, "share_of_interval": round(share, 4)}


def main() -> None:
    """Measure every case, print, save."""
    cases = []
    for files, days, firing in CASES:
        with tempfile.TemporaryDirectory(prefix="cliffwatch-rules-") as folder:
            cases.append(measure(Path(folder), files, days, firing=firing))
    passed = all(one["share_of_interval"] < GOAL for one in cases)
    result = {"interval_s": STEP_S, "goal_share": GOAL, "cases": cases, "passed": passed}
    conclude("slo_rules", result, passed=passed)


if __name__ == "__main__":
    main()
