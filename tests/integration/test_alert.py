"""Alerts go all the way: an engine that is asked for too much, real Prometheus, real Alertmanager, a webhook."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.slo.burn import STANDARD_PAIRS, burn_alert
from cliffwatch.slo.spec import SloFile
from tests.servers import stack
from tests.servers.client import complete, complete_many
from tests.servers.compressed import FACTOR, chain_config
from tests.servers.engines import standin
from tests.servers.load import run
from tests.servers.monitoring import alertmanager, prometheus, query
from tests.servers.processes import Server, free_port, get_text, running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("alertmanager_tools")]


def _firing(server: Server) -> list[dict[str, Any]]:
    alerts = json.loads(get_text(f"{server.url}/api/v1/alerts"))["data"]["alerts"]
    return [alert for alert in alerts if alert["state"] == "firing"]


CHAT = SloFile.model_validate(
    {
        "name": "chat",
        "objectives": [{"sli": "ttft", "threshold": "500ms", "target": "99%"}],
        "watch": {"engine": "vllm", "match": {"job": "vllm"}, "scrape_interval": "60s"},
    }
)
PAGE = burn_alert(STANDARD_PAIRS[0], Decimal("0.99"))
IDLE_S = 3600 / FACTOR  # a compressed hour; a minute between scrapes is 500 ms
BUSY_S = 6.0  # what scrapes, evaluations, notifications and a busy machine may take beside the windows
REQUEST = {"prompt_words": 64, "output_tokens": 20}


def flood(capacity_rps: float) -> dict[str, Any]:
    """A workload of three times what the engine can do: after 4 s it owes 8 s of work, however fast it is."""
    return {
        "name": "flood",
        "arrivals": {"kind": "constant", "rate": round(3 * capacity_rps, 1)},
        "duration": "4s",
        "input_tokens": {"kind": "fixed", "value": REQUEST["prompt_words"]},
        "output_tokens": {"kind": "fixed", "value": REQUEST["output_tokens"]},
        "batch": {"sizes": [1]},
        "endpoint": "completions",
        "seed": 3,
    }


def capacity_rps(url: str) -> float:
    """How many of the flood's requests the engine ends a second, when it has always more than it can take."""
    complete(url, **REQUEST)  # an engine's first request is slow
    began, count = time.perf_counter(), 32
    complete_many(url, count, at_once=count, **REQUEST)
    return count / (time.perf_counter() - began)


@contextmanager
def service(tmp_path: Path, port: int, prometheus_url: str) -> Iterator[str]:
    """The SLO service, watching `CHAT`, with a token for Alertmanager: its URL."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "slo.yaml").write_text(yaml.safe_dump(CHAT.model_dump(mode="json", exclude_unset=True)))
    command = [
        sys.executable, "-m", "cliffwatch", "serve", "--runs", tmp_path / "runs", "--port", str(port),
        "--watch", tmp_path / "slo.yaml", "--prometheus", prometheus_url,
        "--webhook-token-file", tmp_path / "token",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running(command, url=url, health="/healthz", log=tmp_path / "service.log", ready_within_s=30):
        yield url


def logged_pages(url: str) -> list[tuple[str, bool]]:
    """The service's events of pages: the objective, and whether it has ended."""
    events = json.loads(get_text(f"{url}/v1/alerts"))["events"]
    return [(one["labels"]["objective"], one["ended_unix_s"] is not None) for one in events
            if one["labels"].get("severity") == "page"]  # fmt: skip


@contextmanager
def some_traffic(url: str) -> Iterator[None]:
    """A request every 200 ms, one at a time."""
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.2):
            complete(url, 20, 2)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def pages(bodies: list[bytes], status: str) -> list[dict[str, Any]]:
    """Alerts of one status among what was posted."""
    alerts = [alert for body in bodies for alert in json.loads(body)["alerts"]]
    return [alert for alert in alerts if alert["status"] == status and alert["labels"]["severity"] == "page"]


def burnt(server: Server) -> dict[str, Any]:
    """What the page goes by, at its worst, for the message of a failure."""
    asked = ("max_over_time(cliffwatch_slo:bad:ratio1h[1m])", "max_over_time(cliffwatch_slo:bad:ratio5m[1m])",
             "max_over_time(cliffwatch_slo:events:rate5m[1m])", "min_over_time(up[1m])")  # fmt: skip
    return {promql: query(server, promql) for promql in asked}


def bad_since(server: Server) -> float:
    """Unix time of the first evaluation with bad events."""
    (series,) = query(server, 'cliffwatch_slo:bad:rate5m{slo="chat"}[5m]')
    return next(float(at) for at, value in series["values"] if float(value) > 0)


def suppressed(manager: Server) -> set[str]:
    """Names of alerts that others silence."""
    alerts = json.loads(get_text(f"{manager.url}/api/v2/alerts"))
    return {alert["labels"]["alertname"] for alert in alerts if alert["status"]["inhibitedBy"]}


@pytest.fixture(params=["stand-in", "vLLM"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """An engine that the flood is too much for: a few sequences at once, the others wait."""
    if request.param == "vLLM":
        yield request.getfixturevalue("vllm_server")
        return
    with standin(tmp_path, "--max-num-seqs", "2") as server:
        yield server


def test_a_flood_pages_in_its_computed_time_and_recovery_ends_it(engine: Server, tmp_path: Path) -> None:
    """Everything as `slo compile` writes it, time compressed: idle and some traffic page nobody; a flood does."""
    workload = flood(capacity_rps(engine.url))
    port, manager_port, service_port = free_port(), free_port(), free_port()
    (tmp_path / "token").write_text("a-secret")
    with stack.webhook() as (pager, paged):
        config, routes = chain_config(
            CHAT,
            tmp_path,
            engine=f"127.0.0.1:{engine.port}",
            alertmanager=f"127.0.0.1:{manager_port}",
            service=f"http://127.0.0.1:{service_port}",
            token=tmp_path / "token",
            page=pager,
        )
        with (
            prometheus(tmp_path, config, port=port) as server,
            service(tmp_path, service_port, server.url) as watching,
            alertmanager(tmp_path, routes, port=manager_port) as manager,
        ):
            assert wait_for(lambda: bool(query(server, 'up{job="vllm"} == 1')), timeout_s=30)
            time.sleep(IDLE_S)
            with some_traffic(engine.url):
                assert wait_for(lambda: bool(query(server, "cliffwatch_slo:bad:ratio1h == 0")), timeout_s=20)
                time.sleep(5)
                assert _firing(server) == []
                assert paged == []
                assert logged_pages(watching) == []
                load = threading.Thread(target=run, args=(workload, engine.url, tmp_path))
                load.start()
                assert wait_for(lambda: bool(pages(paged, "firing")), timeout_s=40), burnt(server)
                page_s = time.time() - bad_since(server)
                computed_s = PAGE.fires_after_s(1.0)
                assert computed_s is not None
                assert 0 < page_s < computed_s / FACTOR + BUSY_S
                assert wait_for(lambda: "SloBurn1d" in suppressed(manager), timeout_s=10)
                assert ("ttft-0.5s-99pct", False) in logged_pages(watching)
                load.join()
                ends_s = PAGE.resolves_after_s(1.0)
                assert ends_s is not None
                assert wait_for(lambda: bool(pages(paged, "resolved")), timeout_s=ends_s / FACTOR + BUSY_S)
                assert wait_for(lambda: ("ttft-0.5s-99pct", True) in logged_pages(watching), timeout_s=BUSY_S)
    assert {alert["labels"]["objective"] for alert in pages(paged, "firing")} == {"ttft-0.5s-99pct"}
