"""`cliffwatch demo` as a person types it: every real part, a judged table, a report, and nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader

pytestmark = pytest.mark.e2e
MARK = "CLIFFWATCH_DEMO_TEST"


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cliffwatch", "demo", *options]
    mark = {**os.environ, MARK: str(folder)}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=mark,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def started_by(folder: Path) -> list[int]:
    """Living processes that a demo in `folder` started, itself included."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _is_marked(pid, folder)]


def _is_marked(pid: int, folder: Path) -> bool:
    try:
        return f"{MARK}={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.fixture
def taken_ports() -> Iterator[None]:
    """Somebody else listens on the ports that the demo would like."""
    holders = []
    for port in (8000, 8080):
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(("127.0.0.1", port))
            holder.listen()
        except OSError:
            pass  # taken already: just as good
        holders.append(holder)
    yield
    for holder in holders:
        holder.close()


@pytest.mark.usefixtures("taken_ports")
def test_it_runs_to_its_table_and_report_beside_others_on_its_ports(tmp_path: Path) -> None:
    process = start(tmp_path, "--duration", "8s")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "port 8000 is taken; the engine uses" in output
    assert "port 8080 is taken; the page uses" in output
    assert output.count("TTFT ≤ 300 ms") == 1  # one table, not one a command
    report = tmp_path / output.strip().splitlines()[-1].split()[-1]
    assert "<html" in report.read_text()[:500]
    run = report.parent
    manifest = read_manifest(run)
    assert manifest.state is RunState.COMPLETE
    assert manifest.accounting is not None
    assert manifest.accounting.balanced
    assert manifest.accounting.issued == RunReader(run).count() > 80  # 20 a second for 8 s: 160, and 8 sigma below
    assert len(manifest.workers) == 2
    assert started_by(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_keeps_what_it_recorded_and_ends_everything(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "--duration", "60s")
    assert wait_for(lambda: any(tmp_path.glob("runs/demo-*/shards/*.part-*.parquet")), timeout_s=60)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    (run,) = tmp_path.glob("runs/demo-*")
    manifest = read_manifest(run)
    assert manifest.state is RunState.PARTIAL
    assert manifest.accounting is not None
    assert manifest.accounting.balanced
    assert started_by(tmp_path) == []


def test_killed_outright_it_takes_its_processes_along(tmp_path: Path) -> None:
    process = start(tmp_path, "--duration", "60s")
    assert wait_for(lambda: any(tmp_path.glob("runs/demo-*/manifest.json")), timeout_s=60)
    time.sleep(1)
    process.kill()
    process.wait()
    assert wait_for(lambda: started_by(tmp_path) == [], timeout_s=40)


def test_nonsense_is_refused_before_anything_starts(tmp_path: Path) -> None:
    for options, words in (
        (("--duration", "soon"), "--duration"),
        (("--duration", "10ms"), "too short"),
        (("--slo", "nosuch"), "nosuch"),
        (("--workload", "nosuch"), "nosuch"),
    ):
        process = start(tmp_path, *options)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 2, output
        assert words in output
        assert not re.search("Traceback", output)
    assert started_by(tmp_path) == []
