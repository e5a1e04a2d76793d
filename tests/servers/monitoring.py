"""Prometheus and Alertmanager from `.tools/prometheus`, each on a free port of the loopback interface."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.servers.engines import ROOT
from tests.servers.processes import Server, free_port, get_text, running

# Debian's Alertmanager reads its templates from here and nowhere else.
ALERTMANAGER_TEMPLATES = Path("/usr/share/prometheus/alertmanager/default.tmpl")
PROMETHEUS_BIN = ROOT / ".tools" / "prometheus" / "bin"


@contextlib.contextmanager
def prometheus(folder: Path, config: Path, *, port: int | None = None) -> Iterator[Server]:
    """Prometheus with this configuration file; its data goes to `folder`."""
    address = f"127.0.0.1:{port or free_port()}"
    command: list[str | Path] = [
        PROMETHEUS_BIN / "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus-data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    log = folder / "prometheus.log"
    with running(command, url=f"http://{address}", health="/-/ready", log=log, ready_within_s=30) as server:
        yield server


@contextlib.contextmanager
def alertmanager(folder: Path, config: Path, *, port: int | None = None) -> Iterator[Server]:
    """One Alertmanager that looks for no peers."""
    address = f"127.0.0.1:{port or free_port()}"
    command: list[str | Path] = [
        PROMETHEUS_BIN / "alertmanager",
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager-data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    log = folder / "alertmanager.log"
    with running(command, url=f"http://{address}", health="/-/ready", log=log, ready_within_s=30) as server:
        yield server


def query(server: Server, promql: str) -> list[dict[str, Any]]:
    """The result of an instant query. Raises AssertionError with Prometheus's own message where it is refused."""
    answer = json.loads(get_text(f"{server.url}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"))
    assert answer["status"] == "success", answer
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


def tool(name: str, *arguments: str | Path, folder: Path = ROOT) -> str:
    """Output of promtool or amtool. Raises AssertionError with its output where it fails."""
    command = [str(PROMETHEUS_BIN / name), *(str(argument) for argument in arguments)]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
