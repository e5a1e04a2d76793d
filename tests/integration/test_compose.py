"""docker-compose.yml as Compose itself resolves it: valid, and as careful as it claims to be."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.servers.engines import ROOT

pytestmark = [pytest.mark.beside, pytest.mark.integration]

WITHOUT_PORT = {"locust-worker-1", "locust-worker-2"}


@pytest.fixture(scope="module")
def services(compose_tool: Path) -> dict[str, Any]:
    command = [
        compose_tool,
        "--file",
        ROOT / "docker-compose.yml",
        "--env-file",
        os.devnull,
        "config",
        "--format",
        "json",
    ]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    resolved: dict[str, Any] = json.loads(done.stdout)["services"]
    return resolved


def test_the_whole_set_is_there(services: dict[str, Any]) -> None:
    engines = {"engine", "engine-trtllm", "router"}
    assert set(services) == WITHOUT_PORT | engines | {"slo", "locust-master", "prometheus", "alertmanager", "grafana"}


def test_every_port_is_on_the_loopback_interface(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert bool(service.get("ports")) is (name not in WITHOUT_PORT), name
        assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", ())), name


def test_nothing_runs_as_root_or_without_a_limit(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert int(service["user"].split(":")[0]) > 0, name
        assert int(service["mem_limit"]) > 0, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_everything_that_listens_has_a_health_check(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert ("test" in service["healthcheck"]) is (name not in WITHOUT_PORT), name


def test_every_mounted_file_exists(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            assert volume["type"] == "volume" or Path(volume["source"]).exists(), (name, volume)


def test_the_example_settings_are_those_of_the_file_with_their_defaults() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    defaults = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))
    example = dict(re.findall(r"^(\w+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert example == {name: value for name, value in defaults.items() if name != "PIP_OPTIONS"}
