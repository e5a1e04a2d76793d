"""`cliffwatch serve`: ports, addresses, folders, and how the process ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.records.synthetic import SyntheticRun


def serve(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cliffwatch", "serve", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What `cliffwatch serve` says when it refuses its options."""
    command = Command(capsys, monkeypatch)

    def refused(*arguments: str | Path) -> str:
        ended = command("serve", *arguments)
        assert ended.code == 2, ended
        assert "Traceback" not in ended.err
        return ended.err

    return refused


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_serves_on_a_free_port_and_ends_at_a_signal(
    root: Path, run: SyntheticRun, end: signal.Signals, code: int
) -> None:
    process = serve("--runs", root, "--port", "0")
    try:
        assert process.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}/v1/runs", timeout=10) as answer:  # noqa: S310
            assert json.load(answer)["total"] == 1
            assert "server" not in answer.headers
    finally:
        process.send_signal(end)
        _, errors = process.communicate(timeout=20)
    assert "Traceback" not in errors
    assert process.returncode == code


def test_taken_port(root: Path, refusal: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert re.search(
            rf"--port: is taken; got {port}; allowed: .*0 for a free one", refusal("--runs", root, "--port", str(port))
        )


def test_address_of_another_machine(root: Path, refusal: Callable[..., str]) -> None:
    assert "--host: is not of this machine" in refusal("--runs", root, "--host", "192.0.2.1", "--port", "0")


def test_host_that_does_not_resolve(root: Path, refusal: Callable[..., str]) -> None:
    assert "--host: cannot be resolved" in refusal("--runs", root, "--host", "no such host", "--port", "0")


def test_folder_that_is_not_there(tmp_path: Path, refusal: Callable[..., str]) -> None:
    assert re.search(r"absent: --runs: cannot be read", refusal("--runs", tmp_path / "absent", "--port", "0"))


def test_slo_file_that_is_faulty(root: Path, tmp_path: Path, refusal: Callable[..., str]) -> None:
    (tmp_path / "slo.yaml").write_text("name: x\nobjectives: []", encoding="utf-8")
    assert "slo.yaml: objectives" in refusal("--runs", root, "--slo", tmp_path / "slo.yaml", "--port", "0")
