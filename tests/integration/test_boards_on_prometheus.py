"""Every query of every board, on a real Prometheus that scrapes engines under load, answers with data."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.engines.catalog import engine
from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.rules import compile_rules
from cliffwatch.slo.spec import load_slo
from dashboards import command, export
from tests.servers import stack
from tests.servers.boards import check_queries, check_variables, chosen, filled
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, free_port, get_text, running

pytestmark = [pytest.mark.beside, pytest.mark.integration]

BOARDS = sorted(command.BOARDS)
FACES = ("trtllm", "triton", "sglang")
TRITON_METRICS = free_port()
WORKLOAD = {
    "name": "boards",
    "requests": 100_000,
    "arrivals": {"kind": "poisson", "rate": 20},
    "input_tokens": {"kind": "uniform", "min": 32, "max": 3000},
    "output_tokens": {"kind": "uniform", "min": 1, "max": 40},
    "batch": {"sizes": [1, 2]},
}
# Some first tokens later than the threshold, so that a budget burns; its edge is one of vLLM's.
SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 95%}
  - {sli: ttft, threshold: 5ms, target: 95%, name: hasty}
watch: {engine: vllm, match: {job: engine}, group_by: [model_name], scrape_interval: 1s}
"""


@pytest.fixture(scope="module")
def engines_seen(
    standin_server: Server, llama_cpp_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """The stand-in in each of its faces, and a real llama.cpp; Triton's metrics are on a port of their own."""
    servers = {"vllm": standin_server, "llamacpp": llama_cpp_server}
    with ExitStack() as stack_of:
        for face in FACES:
            options, health = ("--face", face, "--speed", "10"), "/health"
            if face == "triton":
                options, health = (*options, "--metrics-port", str(TRITON_METRICS)), "/v2/health/ready"
            servers[face] = stack_of.enter_context(standin(tmp_path_factory.mktemp(face), *options, health=health))
        yield servers


@pytest.fixture(scope="module")
def gpu_exporter() -> Iterator[int]:
    """There is no GPU here: a page with the catalog's names of the DCGM exporter, one GPU, every value 1. Its port."""
    page = "".join(f'{one.name}{{gpu="0",Hostname="h"}} 1\n' for one in engine("dcgm").metrics).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Keeps the test's output free of requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def scraped(
    engines_seen: dict[str, Server],
    gpu_exporter: int,
    prometheus_tools: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """The shipped configuration and the rules of an SLO; every engine, a load run and the SLO service are scraped."""
    folder = tmp_path_factory.mktemp("prometheus")
    port, slo_port, load_port = free_port(), free_port(), free_port()
    config = stack.prometheus_config(
        folder,
        engine=f"127.0.0.1:{engines_seen['vllm'].port}",
        slo=f"127.0.0.1:{slo_port}",
        load=f"127.0.0.1:{load_port}",
        alertmanager=f"127.0.0.1:{free_port()}",  # nothing listens: who is down must not spoil the rest
        prometheus=f"127.0.0.1:{port}",
        trtllm=f"127.0.0.1:{engines_seen['trtllm'].port}",
    )
    others = {name: server for name, server in engines_seen.items() if name not in {"vllm", "trtllm"}}
    _scrape_too(config, others, gpu_exporter)
    (folder / "slo.yaml").write_text(SLO)
    (config.parent / "rules/chat.yml").write_text(rule_file(compile_rules(load_slo(folder / "slo.yaml"))))
    with (
        prometheus(folder, config, port=port) as server,
        _slo_service(folder, slo_port, server),
        _load(folder, load_port, engines_seen["vllm"]),
    ):
        for _ in range(3):  # some series are absent until their first event, and have no rate before the next
            _send({name: one for name, one in engines_seen.items() if name != "vllm"})
            seen = _scrapes(server)
            assert wait_for(lambda seen=seen: _scrapes(server) >= seen + 1, timeout_s=30), _seen_by_job(server)
        for wanted in ("cliffwatch_slo_budget_lasts_seconds", "rate(cliffwatch_client_ttft_seconds_count[5s]) > 0"):
            assert wait_for(lambda wanted=wanted: bool(query(server, wanted)), timeout_s=30), wanted
        yield server


@contextmanager
def _slo_service(folder: Path, port: int, server: Server) -> Iterator[None]:
    (folder / "runs").mkdir()
    command: list[str | Path] = [sys.executable, "-m", "cliffwatch", "serve", "--runs", folder / "runs"]
    command += ["--port", str(port), "--watch", folder / "slo.yaml", "--prometheus", server.url]
    url, log = f"http://127.0.0.1:{port}", folder / "service.log"
    with running(command, url=url, health="/healthz", log=log, ready_within_s=60):
        yield


@contextmanager
def _load(folder: Path, port: int, target: Server) -> Iterator[None]:
    """A run that goes on until the boards have been read, then is ended as a person would."""
    (folder / "workload.yaml").write_text(yaml.safe_dump(WORKLOAD))
    command = [sys.executable, "-m", "cliffwatch", "run", folder / "workload.yaml", "--target", target.url]
    command += ["--drain", "1s", "--out", folder / "run", "--metrics", str(port)]
    command += ["--metrics-linger", "0s", "--no-report"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([str(part) for part in command], **quiet) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130


def _scrape_too(config: Path, servers: dict[str, Server], gpu_exporter: int) -> None:
    content = yaml.safe_load(config.read_text())
    for name, server in servers.items():
        target = f"127.0.0.1:{TRITON_METRICS if name == 'triton' else server.port}"
        job = {"job_name": name, "metrics_path": engine(name).paths[0], "static_configs": [{"targets": [target]}]}
        content["scrape_configs"].append(job)
    gpu = {"job_name": "gpu", "static_configs": [{"targets": [f"127.0.0.1:{gpu_exporter}"]}]}
    content["scrape_configs"].append(gpu)
    config.write_text(yaml.safe_dump(content))


def _send(servers: dict[str, Server]) -> None:
    for name, server in servers.items():
        TRAFFIC.get(name, _complete)(server)


def _complete(server: Server) -> None:
    complete_many(server.url, 40, at_once=8, prompt_words=300, output_tokens=20)


def _generate(server: Server) -> None:
    body = json.dumps({"text_input": "word " * 300, "max_tokens": 20}).encode()
    url = f"{server.url}/v2/models/llama-3-8b/generate"
    for _ in range(20):
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as answer:  # noqa: S310
            answer.read()


TRAFFIC = {"triton": _generate}


def _seen_by_job(server: Server) -> dict[str, float]:
    """Scrapes that succeeded; no router runs here."""
    result = query(server, 'sum by (job) (sum_over_time(up{job!="router"}[5m]))')
    return {one["metric"]["job"]: float(one["value"][1]) for one in result}


def _scrapes(server: Server) -> float:
    """Of the job that has the fewest."""
    return min(_seen_by_job(server).values(), default=0)


@pytest.mark.parametrize("name", BOARDS)
def test_every_query_answers_with_numbers(name: str, scraped: Server) -> None:
    check_queries(scraped, export.board_json(command.BOARDS[name]()), {"objective": "hasty"})


@pytest.mark.parametrize("name", BOARDS)
def test_every_variable_has_values_and_its_preset_is_one_of_them(name: str, scraped: Server) -> None:
    check_variables(scraped, export.board_json(command.BOARDS[name]()))


def test_attainment_on_an_edge_is_the_exact_share(scraped: Server, standin_server: Server) -> None:
    """The board's card agrees with the engine's own counters."""
    exposed = get_text(f"{standin_server.url}/metrics")

    def counter(pattern: str) -> float:
        found = re.search(pattern + r"\S*\} (\S+)", exposed)
        assert found, pattern
        return float(found[1])

    good = counter(r'vllm:time_to_first_token_seconds_bucket\{\S*le="2.5"')
    total = counter(r"vllm:time_to_first_token_seconds_count\{")
    board = export.board_json(command.BOARDS["overview"]())
    card = next(panel for panel in board["panels"] if panel["title"].startswith("TTFT within"))
    values = chosen(board)
    shown = float(query(scraped, filled(card["targets"][0]["expr"], values))[0]["value"][1])
    assert shown == pytest.approx(good / total, abs=1e-9)
