"""A heatmap over HTTP on a run of 1,000,000 rows: `python -m benchmarks.heatmap_api [ROWS]` (aim: at most 300 ms).

`cliffwatch serve` runs in a process of its own, as a user starts it; each question is asked in three ways:
cold (never asked before), kept (asked again), and unchanged (If-None-Match, a 304). Beside it the whole page's
refresh: its six requests at once, cold. Saves what it saw in benchmarks/results/heatmap_api.json.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2

from benchmarks._saved import conclude
from cliffwatch.records.figures import FIGURES
from tests.records.synthetic import make_run
from tests.servers.processes import free_port, running

AIM_MS = 300.0
STATISTICS = ("p50", "p90", "p95", "p99")
METRICS = ("ttft_user_s", "itl_s", "e2e_user_s", "tpot_s")
PAGE = ("", "/attainment", "/heatmap?statistic=mean", "/timeline?metric=ttfa_s", "/outcomes", "/percentiles")
RUN = "/v1/runs/big"
SLO_TEXT = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2s, target: 95%}
  - {sli: itl, threshold: 50ms, target: 99%}
"""


def milliseconds(ask: Callable[[], httpx2.Response], status: int = 200) -> float:
    started = time.perf_counter()
    answer = ask()
    took = (time.perf_counter() - started) * 1000
    if answer.status_code != status:
        sys.exit(f"{answer.url} answered {answer.status_code}: {answer.text}")
    return took


def measure(client: httpx2.Client) -> dict[str, list[float]]:
    """Milliseconds of each way of asking."""
    took: dict[str, list[float]] = {"cold": [], "kept": [], "unchanged": []}
    milliseconds(lambda: client.get(f"{RUN}/heatmap?metric=send_lag_s"))  # opens the run
    for metric in METRICS:
        for statistic in STATISTICS:
            path = f"{RUN}/heatmap?metric={metric}&statistic={statistic}"
            took["cold"].append(milliseconds(lambda path=path: client.get(path)))
            took["kept"].append(milliseconds(lambda path=path: client.get(path)))
            tag = client.get(path).headers["etag"]
            again = {"If-None-Match": tag}
            took["unchanged"].append(milliseconds(lambda path=path, again=again: client.get(path, headers=again), 304))
    with ThreadPoolExecutor(len(PAGE)) as pool:
        started = time.perf_counter()
        list(pool.map(lambda part: milliseconds(lambda: client.get(RUN + part)), PAGE))
        took["page"] = [(time.perf_counter() - started) * 1000]
    return took


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    assert set(METRICS) <= set(FIGURES)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "runs" / "big", rows, rate=1000.0, gaps=False).dir
        (run / "slo.yaml").write_text(SLO_TEXT, encoding="utf-8")
        port = free_port()
        command = [sys.executable, "-m", "cliffwatch", "serve", "--runs", run.parent, "--port", str(port)]
        url, log = f"http://127.0.0.1:{port}", Path(folder) / "service.log"
        with (
            running(command, url=url, health="/healthz", log=log, ready_within_s=30),
            httpx2.Client(base_url=url, timeout=60) as client,
        ):
            took = measure(client)
    result = {"rows": rows, "cores": len(os.sched_getaffinity(0)), "aim_ms": AIM_MS} | {
        f"{name}_{what}_ms": round(value, 1)
        for name, values in took.items()
        for what, value in (("median", statistics.median(values)), ("worst", max(values)))
    }
    conclude("heatmap_api", result, passed=result["cold_median_ms"] <= AIM_MS)


if __name__ == "__main__":
    main()
