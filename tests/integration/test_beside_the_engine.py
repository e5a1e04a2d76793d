"""A run and its engine side by side on a real Prometheus; right values are its own /metrics before and after."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from cliffwatch.cli.processes import wait_for
from cliffwatch.cli.prometheus import Prometheus
from services.slo.app import create_app
from services.slo.store import RunStore
from tests.servers import load
from tests.servers.engines import standin
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, get_text

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

REQUESTS = 200
WORKLOAD = {
    "name": "beside",
    "requests": REQUESTS,
    "arrivals": {"kind": "poisson", "rate": 60},
    "input_tokens": {"kind": "uniform", "min": 32, "max": 600},
    "output_tokens": {"kind": "uniform", "min": 2, "max": 20},
    "batch": {"sizes": [1]},
    "warmup": {"requests": 20},
}
SLO = """\
name: beside
objectives:
  - {sli: ttft, threshold: 40ms, target: 50%}
  - {sli: e2e, threshold: 400ms, target: 50%}
"""
NAMES = {
    "ttft": "time_to_first_token",
    "e2e": "e2e_request_latency",
    "itl": "inter_token_latency",
    "queue": "request_queue_time",
    "prefill": "request_prefill_time",
    "decode": "request_decode_time",
}


@dataclass(frozen=True)
class Loaded:
    """A run that ended and was scraped once more, and what the engine's own page grew by over it."""

    run: load.Run
    server: Server
    grew: dict[str, float]

    def report(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).with_name("cliffwatch"), "report", self.run.folder, *options]
        return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)

    def beside(self, *options: str) -> dict[str, Any]:
        done = self.report("--json", "--prometheus", self.server.url, *options)
        assert done.returncode in {0, 1}, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["beside"]
        return found


def shown(engine: Server) -> dict[str, float]:
    """Every series of the engine's page: its name with `le`, where it has one, to its value."""
    found: dict[str, float] = {}
    text = get_text(f"{engine.url}/metrics")
    for name, labels, value in re.findall(r"^(vllm:\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        edge = re.search(r'le="([^"]+)"', labels)
        key = f"{name} {float(edge[1]):g}" if edge else name
        found[key] = found.get(key, 0.0) + float(value)
    return found


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("beside")
    (folder / "slo.yaml").write_text(SLO)
    config = folder / "prometheus.yml"
    with standin(folder) as engine:
        jobs = [{"job_name": "engine", "static_configs": [{"targets": [engine.url.removeprefix("http://")]}]}]
        config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
        with prometheus(folder, config) as server:
            assert wait_for(lambda: bool(query(server, "vllm:e2e_request_latency_seconds_count")), timeout_s=30)
            before = shown(engine)
            run = load.run(WORKLOAD, engine.url, folder, "--slo", str(folder / "slo.yaml"))
            after = shown(engine)
            newest = f"timestamp(vllm:e2e_request_latency_seconds_count) > {run.manifest.ended_unix_s}"
            assert wait_for(lambda: bool(query(server, newest)), timeout_s=30)
            yield Loaded(run, server, {key: value - before.get(key, 0.0) for key, value in after.items()})


def test_the_engine_s_means_are_those_of_its_own_page_and_the_client_s_those_of_the_rows(loaded: Loaded) -> None:
    found = loaded.beside()
    assert (found["whole"], found["same"], found["across"]) == (True, True, 0)
    assert found["sent"] == found["ours"] == found["served"] == REQUESTS
    figures = {one["figure"]: one for one in found["figures"]}
    for key, name in NAMES.items():
        n, seconds = (loaded.grew[f"vllm:{name}_seconds_{part}"] for part in ("count", "sum"))
        assert figures[key]["engine"]["n"] == n > 0
        assert figures[key]["engine"]["mean_s"] == pytest.approx(seconds / n, rel=1e-9)
    ((ttft, e2e),) = loaded.run.rows("SELECT avg(first_token_ns - sent_ns), avg(last_token_ns - sent_ns) FROM requests")
    assert figures["ttft"]["client"] == {"mean_s": pytest.approx(ttft / 1e9, abs=1e-6), "n": REQUESTS}
    assert figures["e2e"]["client"] == {"mean_s": pytest.approx(e2e / 1e9), "n": REQUESTS}
    assert figures["queue"]["client"] is None


def test_the_parts_add_up_to_what_the_client_saw_and_the_way_between_took_time(loaded: Loaded) -> None:
    for one in loaded.beside()["breakdowns"]:
        parts = {part["name"]: part["mean_s"] for part in one["parts"]}
        assert sum(parts.values()) == pytest.approx(one["client_s"])
        assert 0 < parts["network and client"] < one["client_s"], "loopback: after the engine, before our stamp"
        assert abs(parts["rest of the engine"]) < 0.5 * one["client_s"]


def test_shares_are_bounded_by_the_engine_s_own_edges(loaded: Loaded) -> None:
    ttft, e2e = loaded.beside()["shares"]
    exact = loaded.grew["vllm:time_to_first_token_seconds_bucket 0.04"] / REQUESTS  # 40 ms is an edge
    assert (ttft["low"], ttft["high"]) == (exact, exact)
    bounds = [loaded.grew[f"vllm:e2e_request_latency_seconds_bucket {edge}"] / REQUESTS for edge in ("0.3", "0.5")]
    assert [e2e["low"], e2e["high"]] == bounds
    ((within,),) = loaded.run.rows("SELECT avg((last_token_ns - sent_ns <= 400000000)::INTEGER) FROM requests")
    assert e2e["client"] == pytest.approx(within)


def test_the_table_and_the_page_say_it_too(loaded: Loaded, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = loaded.report("--prometheus", loaded.server.url, "--html", str(page))
    for said in (done.stdout, page.read_text()):
        text = " ".join(said.split())
        assert "network and client" in text and "queue" in text and f"{REQUESTS} prompts sent" in text


def test_the_service_answers_with_the_same(loaded: Loaded) -> None:
    app = create_app(RunStore(loaded.run.folder), server=Prometheus(loaded.server.url))
    with TestClient(app) as client:
        answer = client.get(f"/v1/runs/{loaded.run.folder.name}/engine").json()
    assert answer["note"] is None
    assert answer["beside"] == loaded.beside()


def test_what_cannot_be_known_is_said(loaded: Loaded) -> None:
    found = loaded.beside("--engine-match", "job=another")
    assert (found["served"], found["same"], found["from_unix_s"]) == (None, None, None)
    assert all(one["engine"] is None and one["difference_s"] is None for one in found["figures"])
    assert "two samples" in found["figures"][0]["lacking"]
    assert loaded.report("--prometheus", "http://127.0.0.1:9").returncode == 4
    for options in (["--engine-match", "job=x"], ["--prometheus", loaded.server.url, "--engine-match", "nonsense"]):
        refused = loaded.report(*options)
        assert refused.returncode == 2 and "--" in refused.stderr and "Traceback" not in refused.stderr
