"""`cliffwatch slo backtest` over 30 days of 15-second samples of 50 series: time, memory, beside reading them raw.

    python -m benchmarks.backtest [DAYS]

Writes a past into a Prometheus of its own (.tools/prometheus), runs the command as a user would, and in the same run
reads the same samples over the same API without any arithmetic: the floor of whatever fetches them to compute here.
Saves benchmarks/results/backtest.json. Goal for 30 days: at most 60 s.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.servers.history import prometheus_with
from tests.servers.processes import Server

RESULT = Path(__file__).parent / "results" / "backtest.json"
GOAL_S = 60.0
STEP_S, DAY_S = 15, 86_400
INSTANCES = 25  # of two series each
TTFT = "vllm:time_to_first_token_seconds"
SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 99%}
watch: {engine: vllm, period: 30d}
"""


def past(steps: int) -> dict[str, list[float | None]]:
    """Two counters an instance: a few events a step, 0.2 % of them bad, and once a day an hour with 20 %."""
    series: dict[str, list[float | None]] = {}
    for instance in range(INSTANCES):
        rng = random.Random(instance)  # noqa: S311  traffic, no secret
        everything = good = 0
        counts: list[float | None] = []
        goods: list[float | None] = []
        for step in range(steps):
            events = rng.randint(0, 20)
            share = 0.2 if step * STEP_S % DAY_S < 3600 else 0.002
            everything += events
            good += events - int(events * share + rng.random())
            counts.append(everything)
            goods.append(good)
        series[f'{TTFT}_count{{instance="{instance}"}}'] = counts
        series[f'{TTFT}_bucket{{instance="{instance}",le="2.5"}}'] = goods
    return series


def raw_read(server: Server, start_s: int, days: int) -> tuple[float, int]:
    """Seconds to read every sample, a day a question, and how many there are."""
    started, samples = time.perf_counter(), 0
    for day in range(1, days + 1):
        form = {"query": f'{{__name__=~"{TTFT}.+"}}[1d]', "time": str(start_s + day * DAY_S)}
        with urllib.request.urlopen(f"{server.url}/api/v1/query?{urllib.parse.urlencode(form)}") as answer:  # noqa: S310
            result = json.load(answer)["data"]["result"]
        samples += sum(len(one["values"]) for one in result)
    return time.perf_counter() - started, samples


def backtest(server: Server, slo: Path, start_s: int, days: int, every: str) -> dict[str, float]:
    """Run the command once: wall and CPU seconds and peak MB of its process, and the alerts that it found."""
    span = ["--from", str(start_s), "--to", str(start_s + days * DAY_S), "--every", every]
    command = [sys.executable, "-m", "cliffwatch", "slo", "backtest", str(slo), "--prometheus", server.url, *span]
    with tempfile.TemporaryFile() as out:
        started, before_s = time.perf_counter(), os.times().children_user + os.times().children_system
        process, peak_kb = subprocess.Popen([*command, "--json"], stdout=out), 0
        while process.poll() is None:
            peak_kb = max(peak_kb, _peak_kb(process.pid))
            time.sleep(0.05)
        wall_s = time.perf_counter() - started
        cpu_s = os.times().children_user + os.times().children_system - before_s
        if process.returncode:
            sys.exit(f"cliffwatch slo backtest ended with {process.returncode}")
        out.seek(0)
        result = json.load(out)["objectives"][0]["result"]
    return {
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "peak_rss_mb": round(peak_kb / 1024, 1),
        "pages": result["pages"],
        "tickets": result["tickets"],
    }


def _peak_kb(pid: int) -> int:
    """Of the process itself: `ru_maxrss` would begin with what this one had when it forked."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def measure(days: int) -> Iterator[tuple[str, object]]:
    """Figures by name, as they come."""
    steps = days * DAY_S // STEP_S
    start_s = (int(time.time()) // DAY_S - days) * DAY_S
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slo.yaml").write_text(SLO)
        with prometheus_with(folder, past(steps), start_s=start_s, step_s=STEP_S, keep_days=days + 2) as server:
            for every in ("15s", "1m"):
                yield f"every_{every}", backtest(server, folder / "slo.yaml", start_s, days, every)
            seconds, samples = raw_read(server, start_s, days)
            yield "raw_read_s", round(seconds, 2)
            yield "samples", samples


def main() -> None:
    """Measure, print, save; exit code 1 where the goal is missed."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    figures: dict[str, object] = {"days": days, "series": 2 * INSTANCES, "goal_s": GOAL_S, "cpus": os.cpu_count()}
    for name, value in measure(days):
        figures[name] = value
        print(name, value)
    RESULT.write_text(json.dumps(figures, indent=2) + "\n")
    finest = figures["every_15s"]
    if not isinstance(finest, dict) or finest["wall_s"] > GOAL_S:
        sys.exit(1)


if __name__ == "__main__":
    main()
