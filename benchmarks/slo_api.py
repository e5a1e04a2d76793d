"""The live API over 50 SLOs and 50 clients: `.venv/bin/python -m benchmarks.slo_api` (aim: p95 at most 300 ms).

A real Prometheus evaluates the compiled rules of 50 SLO files over the stand-in engine; `cliffwatch serve` watches
them in a process of its own. 50 clients, each a connection of its own, ask for the list and for single SLOs, one after
the other without a pause; then 50 more for every route in turn. Writes `benchmarks/results/slo_api.json`: latencies,
answers a second, and the service's memory before and after.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2

from benchmarks._saved import conclude
from benchmarks._watched import RUN_ID, SLOS, memory_mb, watching_service

CLIENTS = 50
SECONDS = 15.0
AIM_MS = 300.0
SLO_ROUTES = ("/v1/slos", "/v1/slos/{name}")
ROUTES = (
    *SLO_ROUTES,
    "/v1/slos/{name}/history",
    "/v1/alerts",
    "/metrics",
    "/v1/runs",
    f"/v1/runs/{RUN_ID}",
    *(
        f"/v1/runs/{RUN_ID}/{figure}"
        for figure in ("attainment", "percentiles", "heatmap", "heatmaps", "timeline", "outcomes", "engine")
    ),
)


def client(url: str, routes: Sequence[str], number: int, ends: float) -> tuple[dict[str, list[float]], int]:
    """Milliseconds of each answer to one client, by what was asked; and how many said 503 (busy, ask again)."""
    took: dict[str, list[float]] = {route: [] for route in routes}
    busy = 0
    with httpx2.Client(base_url=url, timeout=60) as connection:
        while time.monotonic() < ends:
            for route in routes:
                started = time.perf_counter()
                answer = connection.get(route.format(name=f"slo-{number:02}"))
                if answer.status_code == 503:
                    busy += 1  # a refusal is quick, and no answer
                    continue
                answer.raise_for_status()
                took[route].append((time.perf_counter() - started) * 1e3)
    return took, busy


def ask(url: str, routes: Sequence[str]) -> dict[str, Any]:
    """What `CLIENTS` clients saw who asked for `routes` in turn."""
    ends = time.monotonic() + SECONDS
    with ThreadPoolExecutor(CLIENTS) as pool:
        parts = list(pool.map(lambda number: client(url, routes, number, ends), range(CLIENTS)))
    rows = {route: _row([value for took, _ in parts for value in took[route]]) for route in routes}
    answers = [value for took, _ in parts for values in took.values() for value in values]
    return {
        "answers": rows,
        "all": _row(answers),
        "slowest_p95_ms": max(row["p95_ms"] for row in rows.values()),
        "busy": sum(busy for _, busy in parts),
        "answers_per_s": round(len(answers) / SECONDS, 1),
    }


def _row(values_ms: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values_ms, n=100)
    return {"n": len(values_ms)} | {f"p{share}_ms": round(cuts[share - 1], 1) for share in (50, 95, 99)}


def measure(url: str, pid: int) -> tuple[dict[str, object], bool]:
    """Both rounds, and whether every route keeps within the aim."""
    with httpx2.Client(base_url=url, timeout=60) as connection:
        listed = connection.get("/v1/slos").json()
    states = {one["state"] for one in listed["slos"]}
    assert len(listed["slos"]) == SLOS
    assert states == {"good"}, states
    before = memory_mb(pid)
    slos, everything = ask(url, SLO_ROUTES), ask(url, ROUTES)
    found = {
        "slos_asked": slos,
        "all_asked": everything,
        "memory_mb": {"before": round(before, 1), "after": round(memory_mb(pid), 1)},
    }
    return found, max(slos["slowest_p95_ms"], everything["slowest_p95_ms"]) <= AIM_MS


def main() -> None:
    with tempfile.TemporaryDirectory() as name, watching_service(Path(name)) as (service, _):
        found, passed = measure(service.url, service.pid)
    host = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    result = {"slos": SLOS, "clients": CLIENTS, "seconds": SECONDS, "aim_p95_ms": AIM_MS, "host": host, **found}
    conclude("slo_api", result, passed=passed)


if __name__ == "__main__":
    main()
