"""The capacity search against capacities that are known: of a queue by formula, of the stand-in engine by a fine sweep.

    python -m benchmarks.capacity queue      # 200 searches of an M/M/1 queue and each of several hard ones: two minutes
    python -m benchmarks.capacity engine     # one search and one sweep of the stand-in engine: a quarter of an hour

Saves what it saw in benchmarks/results/capacity_queue.json and capacity_engine.json. Goals: the interval holds the true
capacity in at least 93 % of 200 searches (a true 95 % gives less by chance once in seven runs of 100), at most ten
probes, a median width of at most 5 %; the engine's interval meets the sweep's bracket.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks._saved import conclude
from cliffwatch.records.reader import RunReader
from tests.capacity.queue import search
from tests.servers.engines import standin

SERVICE_RATE = 100.0
# rate at the edge, target, seconds a probe, first rate
QUEUES = {
    "usual": (75.0, 0.95, 800.0, 10.0),
    "half loaded": (50.0, 0.95, 800.0, 10.0),
    "nearly full": (90.0, 0.95, 800.0, 10.0),
    "p99": (75.0, 0.99, 800.0, 10.0),
    "begins above": (75.0, 0.95, 800.0, 300.0),
    "short probes": (75.0, 0.95, 200.0, 10.0),
}
SEEDS = 200
SPEED, THRESHOLD_S, TARGET = 4, 0.06, 0.95
PROBE_S, SWEEP_S, DISCARDED_S = 60, 40, 4
WORKLOAD = {
    "name": "short",
    "duration": PROBE_S,
    "arrivals": {"kind": "poisson", "rate": 20},
    "input_tokens": {"kind": "uniform", "min": 200, "max": 1500},
    "output_tokens": {"kind": "uniform", "min": 4, "max": 24},
    "batch": {"sizes": [1]},
}
SLO = {"name": "quick", "objectives": [{"sli": "ttft", "threshold": THRESHOLD_S, "target": TARGET}]}


def queue() -> dict[str, Any]:
    """Searches of queues whose capacity is known, summed up."""
    found = {}
    for name, (rate, target, seconds, first) in QUEUES.items():
        searches = [
            search(seed, rate=rate, service_rate=SERVICE_RATE, target=target, duration_s=seconds, first=first)
            for seed in range(SEEDS)
        ]
        answers = [answer for answer, _ in searches]
        held = [a.low is not None and a.high is not None and a.low <= rate <= a.high for a in answers]
        widths = [answer.width if answer.width is not None else np.inf for answer in answers]
        found[name] = {
            "rate": rate, "target": target, "probe_s": seconds, "first": first, "searches": SEEDS,
            "held": float(np.mean(held)),
            "median_width": round(float(np.median(widths)), 4), "p90_width": round(float(np.quantile(widths, 0.9)), 4),
            "median_error": round(float(np.median([(a.capacity or 0) / rate - 1 for a in answers])), 4),
            "most_probes": max(len(probes) for _, probes in searches),
            "states": dict(Counter(str(answer.state) for answer in answers)),
        }  # fmt: skip
        print(name, found[name], flush=True)
    usual = found["usual"]
    passed = usual["held"] >= 0.93 and usual["median_width"] <= 0.05 and usual["most_probes"] <= 10
    return {"service_rate": SERVICE_RATE, "queues": found, "passed": passed}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a `cliffwatch` command to its end."""
    line = [sys.executable, "-m", "cliffwatch", *map(str, arguments)]
    return subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)


def sweep_one(folder: Path, url: str, rate: float, number: int) -> dict[str, float]:
    """Share of good requests at one rate, the first and last seconds left out."""
    arrivals = {"kind": "poisson", "rate": rate}
    file, out = folder / f"sweep-{number}.yaml", folder / f"sweep-{number}"
    file.write_text(yaml.safe_dump(WORKLOAD | {"arrivals": arrivals, "duration": SWEEP_S, "seed": 1000 + number}))
    command("run", file, "--target", url, "--out", out, "--no-report")
    reader = RunReader(out)
    good, n = reader.fetch(
        "SELECT count(*) FILTER (outcome = 'ok' AND ttft_user_s <= ?), count(*) FROM requests"
        " WHERE phase = 'measured' AND intended_ns BETWEEN ? AND ?",
        [THRESHOLD_S, DISCARDED_S * 10**9, (SWEEP_S - 1) * 10**9],
    )[0]
    verdict = reader.manifest.verdict
    seen = {"rate": rate, "n": n, "attained": round(good / n, 4), "verdict": str(verdict.state) if verdict else "none"}
    print(seen, flush=True)
    return seen


def monotone(shares: list[float]) -> list[float]:
    """The falling sequence nearest to these shares (pool adjacent violators)."""
    pools: list[list[float]] = []
    for share in shares:
        pools.append([share, 1])
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            value, count = pools.pop()
            before, others = pools[-1]
            pools[-1] = [(before * others + value * count) / (others + count), others + count]
    return [value for value, count in pools for _ in range(int(count))]


def engine() -> dict[str, Any]:
    """One search, and a sweep of the rates about what it found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
        (folder / "slo.yaml").write_text(yaml.safe_dump(SLO))
        with standin(folder / "engine", "--speed", str(SPEED)) as server:
            done = command(
                "capacity", folder / "workload.yaml", "--target", server.url, "--slo", folder / "slo.yaml",
                "--out", folder / "search", "--probe-duration", f"{PROBE_S}s", "--json",
            )  # fmt: skip
            found = json.loads(done.stdout)
            answer = found["answer"]
            rates = [round(answer["capacity"] * float(share), 1) for share in np.linspace(0.9, 1.1, 9)]
            swept = [sweep_one(folder, server.url, rate, number) for number, rate in enumerate(rates)]
    shares = monotone([one["attained"] for one in swept])
    low = max((rate for rate, share in zip(rates, shares, strict=True) if share >= TARGET), default=None)
    high = min((rate for rate, share in zip(rates, shares, strict=True) if share < TARGET), default=None)
    meets = low is not None and high is not None and answer["low"] <= high and answer["high"] >= low
    probes = [
        {key: one[key] for key in ("rate", "outcome", "sent_s", "verdict", "attained")} for one in found["probes"]
    ]
    return {
        "speed": SPEED, "threshold_s": THRESHOLD_S, "target": TARGET, "probe_s": PROBE_S, "answer": answer,
        "width": (answer["high"] - answer["low"]) / answer["capacity"], "knee": found["knee"], "probes": probes,
        "sweep": swept, "sweep_low": low, "sweep_high": high, "passed": meets and len(probes) <= 10,
    }  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    what = sys.argv[1] if len(sys.argv) > 1 else "queue"
    result = {"queue": queue, "engine": engine}[what]()
    conclude(f"capacity_{what}", result, passed=result["passed"])


if __name__ == "__main__":
    main()
