"""Every query of every board, on a real Prometheus that scrapes an engine under load, answers with data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from dashboards import command, export
from tests.servers import stack
from tests.servers.boards import check_queries, check_variables, chosen
from tests.servers.client import complete_many
from tests.servers.monitoring import prometheus, query
from tests.servers.processes import Server, free_port, get_text

pytestmark = pytest.mark.integration

OF_ENGINES = sorted(set(command.BOARDS) - {"load"})  # that one needs a run: see test_live_metrics


@pytest.fixture(scope="module")
def scraped(
    standin_server: Server, prometheus_tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Prometheus with the shipped configuration and a few seconds of an engine's life in it."""
    folder = tmp_path_factory.mktemp("prometheus")
    port = free_port()
    config = stack.prometheus_config(
        folder,
        engine=f"127.0.0.1:{standin_server.port}",
        slo=f"127.0.0.1:{free_port()}",  # nothing listens: a target that is down must not spoil the rest
        alertmanager=f"127.0.0.1:{free_port()}",
        prometheus=f"127.0.0.1:{port}",
    )
    with prometheus(folder, config, port=port) as server:
        assert wait_for(lambda: _scrapes(server) >= 2, timeout_s=30)
        complete_many(standin_server.url, 60, at_once=8, prompt_words=300, output_tokens=20)
        seen = _scrapes(server)
        assert wait_for(lambda: _scrapes(server) >= seen + 2, timeout_s=30)
        yield server


def _scrapes(server: Server) -> float:
    result = query(server, 'sum(count_over_time(up{job="engine"}[5m]))')
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
