"""The live API over 50 SLOs and 50 clients: `.venv/bin/python -m benchmarks.slo_api` (aim: p95 at most 300 ms).

A real Prometheus evaluates the compiled rules of 50 SLO files over the stand-in engine; `cliffwatch serve` watches
them in a process of its own. 50 clients, each a connection of its own, ask for the list and for single SLOs, one after
the other without a pause. Writes `benchmarks/results/slo_api.json`: latencies, answers a second, and the service's
memory before and after.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import yaml

from benchmarks._saved import show_and_save
from cliffwatch.cli.processes import wait_for
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, free_port, running

SLOS = CLIENTS = 50
SECONDS = 15.0
AIM_MS = 300.0


def watching(folder: Path, engine: Server) -> Path:
    """SLO files in `folder`/slos, their rules, and the configuration of a Prometheus that evaluates them."""
    (folder / "slos").mkdir()
    files = []
    for number in range(SLOS):
        document = {
            "name": f"slo-{number:02}",
            "objectives": [
                {"sli": "ttft", "threshold": "2.5s", "target": "95%"},
                {"sli": "e2e", "threshold": "60s", "target": "99%"},
            ],
            "watch": {"engine": "vllm", "match": {"job": "engine"}, "group_by": ["instance"]},
        }
        path = folder / "slos" / f"{number:02}.yaml"
        path.write_text(yaml.safe_dump(document))
        rules = folder / f"rules-{number:02}.yml"
        rules.write_text(rule_file(compile_rules(load_slo(path))))
        files.append(str(rules))
    scrape = {"job_name": "engine", "static_configs": [{"targets": [f"127.0.0.1:{engine.port}"]}]}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
        "rule_files": files,
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    return folder / "prometheus.yml"


def client(url: str, number: int, ends: float) -> dict[str, list[float]]:
    """Milliseconds of each answer to one client, by what was asked."""
    took: dict[str, list[float]] = {"/v1/slos": [], "/v1/slos/{name}": []}
    with httpx2.Client(base_url=url, timeout=60) as connection:
        while time.monotonic() < ends:
            for what, path in (("/v1/slos", "/v1/slos"), ("/v1/slos/{name}", f"/v1/slos/slo-{number:02}")):
                started = time.perf_counter()
                connection.get(path).raise_for_status()
                took[what].append((time.perf_counter() - started) * 1e3)
    return took


def memory_mb(pid: int) -> float:
    """Resident memory."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(url: str, pid: int) -> dict[str, object]:
    with httpx2.Client(base_url=url, timeout=60) as connection:
        listed = connection.get("/v1/slos").json()
    states = {one["state"] for one in listed["slos"]}
    assert len(listed["slos"]) == SLOS
    assert states == {"good"}, states
    before = memory_mb(pid)
    ends = time.monotonic() + SECONDS
    with ThreadPoolExecutor(CLIENTS) as pool:
        parts = list(pool.map(lambda number: client(url, number, ends), range(CLIENTS)))
    rows = {}
    for what in parts[0]:
        values = sorted(value for part in parts for value in part[what])
        cuts = statistics.quantiles(values, n=100)
        rows[what] = {
            "n": len(values),
            "p50_ms": round(cuts[49], 1),
            "p95_ms": round(cuts[94], 1),
            "p99_ms": round(cuts[98], 1),
        }
    answers = sum(len(values) for part in parts for values in part.values())
    return {
        "answers": rows,
        "answers_per_s": round(answers / SECONDS, 1),
        "memory_mb": {"before": round(before, 1), "after": round(memory_mb(pid), 1)},
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        engine = stack.enter_context(standin(folder))
        server = stack.enter_context(prometheus(folder, watching(folder, engine)))
        assert wait_for(lambda: bool(query(server, "up == 1")), timeout_s=30)
        for count in (1, 200):
            complete_many(engine.url, count, at_once=8, prompt_words=20, output_tokens=2)
            time.sleep(2)
        good = "count(cliffwatch_slo:budget_left:ratio) == 100 and count(cliffwatch_slo:events:rate5m > 0) == 100"
        assert wait_for(lambda: bool(query(server, good)), timeout_s=60)
        (folder / "runs").mkdir()
        port = free_port()
        command = [
            sys.executable, "-m", "cliffwatch", "serve", "--runs", folder / "runs", "--port", str(port),
            "--watch", folder / "slos", "--prometheus", server.url,
        ]  # fmt: skip
        url, log = f"http://127.0.0.1:{port}", folder / "service.log"
        service = stack.enter_context(running(command, url=url, health="/healthz", log=log, ready_within_s=60))
        found = measure(url, service.pid)
    host = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    result = {"slos": SLOS, "clients": CLIENTS, "seconds": SECONDS, "aim_p95_ms": AIM_MS, "host": host, **found}
    show_and_save("slo_api", result)


if __name__ == "__main__":
    main()
