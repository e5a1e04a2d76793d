"""Every query of every board, on a real Prometheus that scrapes engines under load, answers with data."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.engines.catalog import engine
from dashboards import command, export
from tests.servers import stack
from tests.servers.boards import check_queries, check_variables, chosen
from tests.servers.client import complete_many
from tests.servers.engines import standin
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, free_port, get_text

pytestmark = pytest.mark.integration

NEEDS_A_RUN = {"load"}  # see test_live_metrics
OF_ENGINES = sorted(set(command.BOARDS) - NEEDS_A_RUN)
FACES = ("trtllm", "triton", "sglang")


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
def scraped(
    engines_seen: dict[str, Server], prometheus_tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Prometheus with the shipped configuration, the other engines beside it, and a few seconds of their lives."""
    folder = tmp_path_factory.mktemp("prometheus")
    port = free_port()
    config = stack.prometheus_config(
        folder,
        engine=f"127.0.0.1:{engines_seen['vllm'].port}",
        slo=f"127.0.0.1:{free_port()}",  # nothing listens: a target that is down must not spoil the rest
        alertmanager=f"127.0.0.1:{free_port()}",
        prometheus=f"127.0.0.1:{port}",
    )
    _scrape_too(config, {name: server for name, server in engines_seen.items() if name != "vllm"})
    with prometheus(folder, config, port=port) as server:
        assert wait_for(lambda: _scrapes(server) >= 2, timeout_s=30)
        _send(engines_seen)  # some series are absent until their first event, and have no rate until the scrape after
        seen = _scrapes(server)
        assert wait_for(lambda: _scrapes(server) >= seen + 1, timeout_s=30)
        _send(engines_seen)
        seen = _scrapes(server)
        assert wait_for(lambda: _scrapes(server) >= seen + 2, timeout_s=30)
        yield server


def _scrape_too(config: Path, servers: dict[str, Server]) -> None:
    content = yaml.safe_load(config.read_text())
    for name, server in servers.items():
        target = f"127.0.0.1:{TRITON_METRICS if name == 'triton' else server.port}"
        job = {"job_name": name, "metrics_path": engine(name).paths[0], "static_configs": [{"targets": [target]}]}
        content["scrape_configs"].append(job)
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


TRITON_METRICS = free_port()
TRAFFIC = {"triton": _generate}


def _scrapes(server: Server) -> float:
    """Of the job that has the fewest."""
    result = query(server, 'min(sum by (job) (count_over_time(up{job!~"cliffwatch|load"}[5m])))')
    return float(result[0]["value"][1]) if result else 0


@pytest.mark.parametrize("name", OF_ENGINES)
def test_every_query_answers_with_numbers(name: str, scraped: Server) -> None:
    check_queries(scraped, export.board_json(command.BOARDS[name]()))


@pytest.mark.parametrize("name", OF_ENGINES)
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
    promql = re.sub(r"\$\{?(\w+)\}?", lambda match: values[match[1]], card["targets"][0]["expr"])
    shown = float(query(scraped, promql)[0]["value"][1])
    assert shown == pytest.approx(good / total, abs=1e-9)
