"""`docker compose up` for real, all but Grafana: load runs and is reported; an engine dies, its page comes and goes.

No registry is asked: a Docker Engine of the test's own builds the image on a base made by debootstrap. Time is
compressed in one place: `EngineDown` waits for 10 s, not 5 minutes, and Alertmanager groups for 5 s, not a minute.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from tests.servers import stack
from tests.servers.docker_engine import DOCKER_DIR, Compose, build_context, docker_engine, make_images
from tests.servers.engines import ROOT
from tests.servers.fixtures import absent
from tests.servers.monitoring import query
from tests.servers.processes import Server, get_text

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.timeout(600)]

PORTS = {f"{name}_PORT": "0" for name in ("ENGINE", "TRTLLM", "ROUTER", "SLO", "LOCUST", "PROMETHEUS", "ALERTMANAGER")}
NOT_HERE = {"grafana"}  # its image comes from a registry only


@dataclass(frozen=True)
class Up:
    """The running stack."""

    docker: docker.DockerClient
    compose: Compose

    def url(self, service: str) -> str:
        """Of the one port that a service publishes on this machine."""
        ((published,),) = self.container(service).attrs["NetworkSettings"]["Ports"].values()
        return f"http://{published['HostIp']}:{published['HostPort']}"

    def get(self, path: str) -> Any:
        return json.loads(get_text(f"{self.url('slo')}{path}"))

    @property
    def prometheus(self) -> Server:
        return Server(self.url("prometheus"), 0, Path(os.devnull))

    def container(self, service: str) -> Any:
        (found,) = self.docker.containers.list(all=True, filters={"label": f"com.docker.compose.service={service}"})
        return found


def _over(folder: Path, context: Path) -> Path:
    """Compose's second file: where to build from, and the compressed configuration."""
    rules = {"for: 5m": "for: 10s"}
    monitored = stack.localized(stack.DEPLOY / "prometheus", folder, rules)
    routes = stack.localized(stack.DEPLOY / "alertmanager", folder, {"group_interval: 1m": "group_interval: 5s"})
    document = {
        "services": {
            "engine": {"build": {"context": str(context)}},
            "prometheus": {"volumes": [f"{monitored}:/etc/prometheus:ro"]},
            "alertmanager": {"volumes": [f"{routes}:/etc/alertmanager:ro"]},
        }
    }
    path = folder / "over.yml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(scope="module")
def up(
    compose_tool: Path,
    alertmanager_tools: Path,  # their programs go into images
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Up]:
    if not (DOCKER_DIR / ".ready").exists() or shutil.which("dockerd") is None or os.geteuid() != 0:
        absent("Docker Engine", "tools-docker (as root)")
    folder = tmp_path_factory.mktemp("compose")
    folder.chmod(0o755)  # containers read their configuration as users of their own
    with docker_engine() as (client, address):
        settings = {**make_images(client, folder), **PORTS, "DURATION": "12s"}
        context = build_context(folder / "context")
        compose = Compose(compose_tool, address, ROOT, _over(folder, context), settings)
        services = set(compose("config", "--services").split()) - NOT_HERE
        try:
            compose("build", "--quiet", "engine", within_s=400)
            compose("up", "--detach", "--wait", *sorted(services))
            yield Up(client, compose)
        finally:
            compose("down", "--volumes", "--timeout", "1")
            assert client.containers.list(all=True) == []
            assert client.volumes.list() == []


def _runs(up: Up) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = up.get("/v1/runs")["runs"]
    return found


def test_load_runs_and_the_service_reports_it(up: Up) -> None:
    assert wait_for(lambda: [one["state"] for one in _runs(up)] == ["complete"], timeout_s=120), up.compose("logs")
    (run,) = _runs(up)
    detail = up.get(f"/v1/runs/{run['id']}")
    accounting = detail["accounting"]
    assert accounting["issued"] == accounting["ok"] > 20
    assert len(detail["workers"]) == 2


def test_prometheus_sees_every_part_and_both_engines_served(up: Up) -> None:
    assert wait_for(lambda: len(query(up.prometheus, "up == 1")) == 6, timeout_s=30), query(up.prometheus, "up")
    for metric in ("vllm:time_to_first_token_seconds_count", "trtllm_time_to_first_token_seconds_count"):
        assert wait_for(lambda metric=metric: bool(query(up.prometheus, f"{metric} > 5")), timeout_s=20), metric


def test_both_slos_are_watched(up: Up) -> None:
    def judged() -> bool:
        states = {one["name"]: one["state"] for one in up.get("/v1/slos")["slos"]}
        return set(states) == {"chat-vllm", "chat-trtllm"} and not {"no data", "stale"} & set(states.values())

    assert wait_for(judged, timeout_s=60), up.get("/v1/slos")


def test_an_engine_that_dies_pages_and_its_return_ends_it(up: Up) -> None:
    def down() -> list[dict[str, Any]]:
        return [one for one in up.get("/v1/alerts")["events"] if one["name"] == "EngineDown"]

    assert down() == []
    up.container("engine").stop(timeout=1)
    assert wait_for(lambda: bool(down()), timeout_s=90), up.compose("logs", "alertmanager", "prometheus")
    (event,) = down()
    assert event["labels"]["severity"] == "page"
    assert event["labels"]["slo"] == "chat-vllm"
    assert event["ended_unix_s"] is None
    received = 'cliffwatch_http_requests_total{route="/v1/alertmanager",status="200"}'
    assert wait_for(lambda: received in get_text(f"{up.url('slo')}/metrics"), timeout_s=30)
    runbook = get_text(f"{up.url('slo')}/runbooks/EngineDown")
    assert "could not scrape an engine" in runbook
    up.container("engine").start()
    assert wait_for(lambda: down()[0]["ended_unix_s"] is not None, timeout_s=90), down()
