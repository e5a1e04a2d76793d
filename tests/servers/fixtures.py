"""pytest fixtures of the servers, one of each a test session. A conftest.py imports those that its folder needs.

An absent server skips the test and names the make target that brings it; with CLIFFWATCH_REQUIRE_SERVERS=1 it fails.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import engines, monitoring
from tests.servers.processes import Server


def absent(what: str, target: str) -> None:
    """Skip, or fail where every server must be there."""
    message = f"{what} is not here; `make {target}` brings it"
    if os.environ.get("CLIFFWATCH_REQUIRE_SERVERS") == "1":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def llama_cpp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real llama.cpp server with a tiny model."""
    if importlib.util.find_spec("xllamacpp") is None:
        absent("llama.cpp", "test")
    with engines.llama_cpp(tmp_path_factory.mktemp("llama_cpp")) as server:
        yield server


@pytest.fixture(scope="session")
def vllm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real vLLM server on CPU with a tiny model (2.8 GB of memory, half a minute to start)."""
    if not (engines.VLLM_DIR / ".ready").exists():
        absent("vLLM", "tools-vllm")
    with engines.vllm(tmp_path_factory.mktemp("vllm")) as server:
        yield server


@pytest.fixture(scope="session")
def standin_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The stand-in engine at ten times its profile's speed."""
    with engines.standin(tmp_path_factory.mktemp("engine"), "--speed", "10") as server:
        yield server


@pytest.fixture(scope="session")
def prometheus_tools() -> Path:
    """The folder of prometheus, promtool, alertmanager and amtool."""
    if not (monitoring.PROMETHEUS_BIN / "promtool").exists():
        absent("Prometheus", "tools-prometheus")
    return monitoring.PROMETHEUS_BIN


@pytest.fixture(scope="session")
def compose_tool() -> Path:
    """Docker Compose's binary, which checks a file without a daemon."""
    path = engines.ROOT / ".tools/compose/bin/docker-compose"
    if not path.exists():
        absent("Docker Compose", "tools-compose")
    return path


@pytest.fixture(scope="session")
def alertmanager_tools(prometheus_tools: Path) -> Path:
    """As `prometheus_tools`, with all that Alertmanager needs to start."""
    if not monitoring.ALERTMANAGER_TEMPLATES.exists():
        absent(f"Alertmanager's {monitoring.ALERTMANAGER_TEMPLATES}", "tools-prometheus (as root)")
    return prometheus_tools
