"""`cliffwatch serve` as it stands beside a Prometheus: 50 SLO files, their compiled rules, the stand-in engine."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.load import run
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, free_port, running

SLOS = 50
RUN_ID = "run"
RUN: dict[str, object] = {
    "name": "watched",
    "arrivals": {"kind": "constant", "rate": 50},
    "duration": "5s",
    "input_tokens": {"kind": "fixed", "value": 64},
    "output_tokens": {"kind": "fixed", "value": 8},
    "batch": {"sizes": [1, 2]},
    "endpoint": "completions",
    "seed": 7,
}


@contextlib.contextmanager
def watching_service(folder: Path) -> Iterator[tuple[Server, Server]]:
    """The service over one run and 50 SLOs of two objectives each, all of them known and good; and the engine."""
    with standin(folder, "--speed", "10") as engine, prometheus(folder, _watching(folder, engine)) as server:
        assert wait_for(lambda: bool(query(server, "up == 1")), timeout_s=30)
        complete_many(engine.url, 1, at_once=1, prompt_words=20, output_tokens=2)
        time.sleep(2)  # a counter's first sample has no increase
        done = run(RUN, engine.url, folder)
        assert done.code == 0, done.output
        good = "count(cliffwatch_slo:budget_left:ratio) == 100 and count(cliffwatch_slo:events:rate5m > 0) == 100"
        assert wait_for(lambda: bool(query(server, good)), timeout_s=60)
        port = free_port()
        command = [
            sys.executable, "-m", "cliffwatch", "serve", "--runs", done.folder, "--port", str(port),
            "--watch", folder / "slos", "--prometheus", server.url,
        ]  # fmt: skip
        url, log = f"http://127.0.0.1:{port}", folder / "service.log"
        with running(command, url=url, health="/healthz", log=log, ready_within_s=60) as service:
            yield service, engine


def memory_mb(pid: int) -> float:
    """Resident memory."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _watching(folder: Path, engine: Server) -> Path:
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
