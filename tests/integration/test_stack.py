"""Every service of docker-compose.yml but Grafana, started for real without Docker.

Commands, environment and configuration files are the compose file's own; container addresses and folders are replaced.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from tests.servers import stack
from tests.servers.engines import ROOT
from tests.servers.monitoring import alertmanager, prometheus, query
from tests.servers.processes import Server, end, free_port, get_text, running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("alertmanager_tools")]

SETTINGS = {"DURATION": "12s", "ENGINE_SPEED": "4"}
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Stack:
    """The running services, and the folder that is /runs in the containers."""

    engine: Server
    slo: Server
    locust: Server
    prometheus: Server
    alertmanager: Server
    runs: Path


def _services(compose_tool: Path) -> dict[str, Any]:
    command = [str(compose_tool), "--file", str(ROOT / "docker-compose.yml"), "config", "--format", "json"]
    environment = {**os.environ, **SETTINGS}
    resolved = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    services: dict[str, Any] = json.loads(resolved)["services"]
    return services


def _command(service: Mapping[str, Any], replacements: Mapping[str, str]) -> list[str]:
    """What the container would execute, on this machine."""
    parts = [*(service.get("entrypoint") or ["cliffwatch"]), *(service.get("command") or [])]
    for old, new in replacements.items():
        parts = [part.replace(old, new) for part in parts]
    # Compose doubles each dollar sign that is meant for the shell.
    parts = [part.replace("$$", "$") for part in parts]
    program = shutil.which(parts[0], path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    assert program, parts[0]
    return [program, *parts[1:]]


@dataclass(frozen=True)
class Place:
    """Where the compose file's services run on this machine: a folder and ports, in place of containers."""

    services: Mapping[str, Any]
    folder: Path
    ports: Mapping[str, int]

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def local(self) -> dict[str, str]:
        """What stands in commands, and what stands in its place here."""
        ports = f"--web-port {self.ports['locust']} --master-bind-port {self.ports['join']}"
        return {
            "0.0.0.0": "127.0.0.1",  # noqa: S104  replaced by the loopback interface
            "8000": str(self.ports["engine"]),
            "8080": str(self.ports["slo"]),
            "9646": str(self.ports["load"]),
            "/runs": str(self.runs),
            "/link/key": str(self.folder / "link-key"),
            "cliffwatch link-key": f"{BIN}/cliffwatch link-key",
            "/opt/cliffwatch/locustfile.py": str(ROOT / "loadgen/locustfile.py"),
            "exec locust": f"exec {BIN}/locust {ports}",
        }

    def variables(self, service: str) -> dict[str, str]:
        found = dict(self.services[service].get("environment") or {})
        local = {"engine:8000": f"127.0.0.1:{self.ports['engine']}", "/link/key": self.local["/link/key"]}
        for old, new in local.items():
            found = {name: value.replace(old, new) for name, value in found.items()}
        return found

    def serve(self, name: str, service: str, health: str, environment: Mapping[str, str] | None = None) -> Any:
        return running(
            _command(self.services[service], self.local),
            url=f"http://127.0.0.1:{self.ports[name]}",
            health=health,
            log=self.folder / f"{service}.log",
            ready_within_s=60,
            environment=environment,
        )

    @contextlib.contextmanager
    def worker(self, name: str) -> Iterator[None]:
        """A Locust worker, which has no address of its own to ask for its health."""
        local = {**self.local, "locust-master": "127.0.0.1"}
        command = [*_command(self.services[name], local), "--master-port", str(self.ports["join"])]
        environment = {**os.environ, **self.variables(name)}
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
            try:
                yield
            finally:
                end(process)


@pytest.fixture(scope="module")
def running_stack(compose_tool: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    ports = {name: free_port() for name in ("engine", "slo", "locust", "join", "prometheus", "load")}
    place = Place(_services(compose_tool), tmp_path_factory.mktemp("stack"), ports)
    place.runs.mkdir()
    with contextlib.ExitStack() as started:
        engine = started.enter_context(place.serve("engine", "engine", "/health"))
        slo = started.enter_context(place.serve("slo", "slo", "/healthz"))
        routes = stack.localized(stack.DEPLOY / "alertmanager", place.folder, {}) / "alertmanager.yml"
        manager = started.enter_context(alertmanager(place.folder, routes))
        config = stack.prometheus_config(
            place.folder,
            engine=f"127.0.0.1:{engine.port}",
            slo=f"127.0.0.1:{slo.port}",
            alertmanager=f"127.0.0.1:{manager.port}",
            prometheus=f"127.0.0.1:{ports['prometheus']}",
            load=f"127.0.0.1:{ports['load']}",
        )
        monitor = started.enter_context(prometheus(place.folder, config, port=ports["prometheus"]))
        master = started.enter_context(place.serve("locust", "locust-master", "/", place.variables("locust-master")))
        for name in ("locust-worker-1", "locust-worker-2"):
            started.enter_context(place.worker(name))
        yield Stack(engine, slo, master, monitor, manager, place.runs)


def _run_folder(running_stack: Stack) -> Path | None:
    return next(iter(running_stack.runs.glob("stack-*")), None)


def test_two_workers_make_one_complete_run(running_stack: Stack) -> None:
    def complete() -> bool:
        folder = _run_folder(running_stack)
        manifest = folder / "manifest.json" if folder else None
        return bool(folder and manifest and manifest.exists() and read_manifest(folder).state is not RunState.RUNNING)

    assert wait_for(complete, timeout_s=120), running_stack.locust.log.read_text()
    folder = _run_folder(running_stack)
    assert folder is not None
    manifest = read_manifest(folder)
    assert manifest.state is RunState.COMPLETE, running_stack.locust.log.read_text()
    assert len(manifest.workers) == 2
    assert manifest.accounting is not None
    assert manifest.accounting.balanced
    assert manifest.accounting.ok > 20


def test_the_service_shows_the_run(running_stack: Stack) -> None:
    folder = _run_folder(running_stack)
    assert folder is not None
    listed = get_text(f"{running_stack.slo.url}/v1/runs")
    assert folder.name in listed


def test_prometheus_scrapes_everything_and_knows_alertmanager(running_stack: Stack) -> None:
    server = running_stack.prometheus
    assert wait_for(lambda: len(query(server, "up == 1")) == 4, timeout_s=30), query(server, "up")
    assert query(server, 'vllm:time_to_first_token_seconds_count{job="engine"} > 20')
    folder = _run_folder(running_stack)
    assert folder is not None and (accounting := read_manifest(folder).accounting) is not None
    total = f'sum(cliffwatch_client_requests_total{{job="load",run="{read_manifest(folder).run_id}"}})'
    assert wait_for(lambda: bool(query(server, f"{total} == {accounting.issued}")), timeout_s=10), query(server, total)
    found = json.loads(get_text(f"{server.url}/api/v1/alertmanagers"))["data"]["activeAlertmanagers"]
    assert [manager["url"] for manager in found] == [f"{running_stack.alertmanager.url}/api/v2/alerts"]


def test_the_rules_judge_the_traffic(running_stack: Stack) -> None:
    server = running_stack.prometheus
    assert wait_for(lambda: bool(query(server, "model_name:ttft_miss:ratio1h")), timeout_s=30)
    (ratio,) = query(server, "model_name:ttft_miss:ratio1h")
    assert 0 <= float(ratio["value"][1]) <= 1
    groups = json.loads(get_text(f"{server.url}/api/v1/rules"))["data"]["groups"]
    assert all(rule["health"] == "ok" for group in groups for rule in group["rules"])


def test_locust_has_its_page(running_stack: Stack) -> None:
    request = urllib.request.Request(f"{running_stack.locust.url}/")  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
        assert "Locust" in answer.read().decode()
