"""Prometheus and Alertmanager from `.tools/prometheus`, each on a free port of the loopback interface."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.servers.engines import ROOT
from tests.servers.processes import Server, free_port, get_text, running

# Debian's Alertmanager reads its templates from here and nowhere else.
ALERTMANAGER_TEMPLATES = Path("/usr/share/prometheus/alertmanager/default.tmpl")
PROMETHEUS_BIN = ROOT / ".tools" / "prometheus" / "bin"
OLD_PROMTOOL = ROOT / ".tools" / "prometheus-2.42" / "bin" / "promtool"  # the oldest that rules are made for


def prometheus(
    folder: Path, config: Path, *, port: int | None = None, keep_days: int = 15, max_samples: int = 50_000_000
) -> AbstractContextManager[Server]:
    """Prometheus with this configuration file; its data goes to `folder`. A query may load `max_samples`."""
    options = (
        f"--storage.tsdb.path={folder / 'prometheus-data'}",
        f"--storage.tsdb.retention.time={keep_days}d",
        f"--query.max-samples={max_samples}",
        "--log.level=warn",
    )
    return _started("prometheus", folder, config, port, *options)


def alertmanager(folder: Path, config: Path, *, port: int | None = None) -> AbstractContextManager[Server]:
    """One Alertmanager that looks for no peers."""
    options = (f"--storage.path={folder / 'alertmanager-data'}", "--cluster.listen-address=")
    return _started("alertmanager", folder, config, port, *options)


def _started(name: str, folder: Path, config: Path, port: int | None, *options: str) -> AbstractContextManager[Server]:
    address = f"127.0.0.1:{port or free_port()}"
    command = [PROMETHEUS_BIN / name, f"--config.file={config}", f"--web.listen-address={address}", *options]
    return running(command, url=f"http://{address}", health="/-/ready", log=folder / f"{name}.log", ready_within_s=30)


def query(server: Server, promql: str) -> list[dict[str, Any]]:
    """The result of an instant query. Raises AssertionError with Prometheus's own message where it is refused."""
    answer = json.loads(get_text(f"{server.url}/api/v1/query?{urllib.parse.urlencode({'query': promql})}"))
    assert answer["status"] == "success", answer
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


def tool(name: str, *arguments: str | Path, folder: Path = ROOT) -> str:
    """Output of promtool or amtool. Raises AssertionError with its output where it fails."""
    return _ran(PROMETHEUS_BIN / name, *arguments, folder=folder)


def promtool(*arguments: str | Path, folder: Path = ROOT, newest_only: bool = False) -> None:
    """Run promtool, and the oldest supported too where it is there. Raises AssertionError with its output.

    Prometheus 2 counts the sample at the far end of a window as well: `newest_only` where a value hangs on that one.
    """
    older = [OLD_PROMTOOL] if OLD_PROMTOOL.exists() and not newest_only else []
    for program in (PROMETHEUS_BIN / "promtool", *older):
        _ran(program, *arguments, folder=folder)


def _ran(program: Path, *arguments: str | Path, folder: Path) -> str:
    command = [str(program), *(str(argument) for argument in arguments)]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
