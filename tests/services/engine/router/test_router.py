"""The router in front of real stand-in engines: bytes as they are, shares, replicas that go and come back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from services.engine.router.router import PREFIX_BYTES, prefix_of
from tests.servers import engines
from tests.servers.processes import Server, free_port, running
from tests.services.engine.conftest import (
    MODEL,
    call,
    connect,
    events,
    exchange,
    metric,
    raw_request,
    read_all,
    wait_for,
)

COMPLETIONS = "/v1/completions"
FAST = ("--model", MODEL, "--speed", "100", "--max-model-len", "4096")


@contextlib.contextmanager
def router(folder: Path, policy: str, *replicas: Server) -> Iterator[Server]:
    port = free_port()
    command: list[str | Path] = [Path(sys.executable).with_name("cliffwatch"), "engine", "route", "--port", str(port)]
    command += ["--policy", policy, *(f"127.0.0.1:{each.port}" for each in replicas)]
    url = f"http://127.0.0.1:{port}"
    with running(command, url=url, health="/health", log=folder / "router.log", ready_within_s=60) as server:
        yield server
        assert "Traceback" not in server.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(engines.standin(tmp_path_factory.mktemp(name), *FAST, "--replica", name))
            for name in ("a", "b")
        )
        yield first, second


@pytest.fixture(scope="module")
def routed(pair: tuple[Server, Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with router(tmp_path_factory.mktemp("router"), "round-robin", *pair) as server:
        yield server


def served_by(server: Server, body: object) -> str:
    answer = exchange(server, raw_request(COMPLETIONS, body, headers="connection: close\r\n"))
    head = answer.partition(b"\r\n\r\n")[0].decode().lower()
    return next(line.split(": ")[1] for line in head.splitlines() if line.startswith("x-served-by"))


def test_replicas_take_turns_and_both_counts_agree(routed: Server, pair: tuple[Server, Server]) -> None:
    before = [metric(each, "vllm:request_success_total") for each in pair]
    assert Counter(served_by(routed, {"prompt": "a", "max_tokens": 2}) for _ in range(10)) == {"a": 5, "b": 5}
    grown = [metric(each, "vllm:request_success_total") - old for each, old in zip(pair, before, strict=True)]
    assert grown == [5, 5]
    assert metric(routed, "cliffwatch_router_requests_total", replica=f"127.0.0.1:{pair[0].port}") >= 5
    assert metric(routed, "cliffwatch_router_in_flight") == 0


def test_a_stream_passes_as_it_is(routed: Server) -> None:
    found = events(routed, COMPLETIONS, {"prompt": "a b c", "max_tokens": 5})
    assert found[-1] == "[DONE]"
    assert sum(bool(event["choices"][0]["text"]) for event in found[:-1]) == 5


def test_errors_pass_as_they_are(routed: Server, pair: tuple[Server, Server]) -> None:
    bad = {"prompt": "a", "max_tokens": -1}
    assert call(routed, COMPLETIONS, bad) == call(pair[0], COMPLETIONS, bad)
    assert call(routed, "/nowhere?x=1", {})[0] == 404


def test_a_connection_is_kept_over_requests_of_both_replicas(routed: Server) -> None:
    with closing(connect(routed)) as connection:
        for _ in range(4):
            connection.sendall(raw_request(COMPLETIONS, {"prompt": "a", "max_tokens": 2, "stream": True}))
            answer = b""
            while not answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
                answer += connection.recv(65536)


def test_http_1_0_ends_with_the_connection(routed: Server) -> None:
    body = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True}).encode()
    request = b"POST /v1/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    answer = exchange(routed, request)
    assert answer.endswith(b"data: [DONE]\n\n")
    assert b"transfer-encoding" not in answer.lower()


def test_a_head_request_has_no_body(routed: Server) -> None:
    assert exchange(routed, b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").endswith(b"\r\n\r\n")


def test_a_client_that_leaves_frees_its_replica(routed: Server, pair: tuple[Server, Server]) -> None:
    slow = {"prompt": "a", "max_tokens": 4000, "stream": True}
    with closing(connect(routed)) as connection:
        connection.sendall(raw_request(COMPLETIONS, slow))
        connection.recv(1000)
    wait_for(lambda: metric(routed, "cliffwatch_router_in_flight") == 0)
    wait_for(lambda: all(metric(each, "vllm:num_requests_running") == 0 for each in pair))


def test_a_prompt_keeps_its_replica(pair: tuple[Server, Server], tmp_path: Path) -> None:
    with router(tmp_path, "prefix-affine", *pair) as server:
        homes = {
            text: {served_by(server, {"prompt": f"{text} " * 2000, "max_tokens": 1, "seed": n}) for n in range(3)}
            for text in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
        }
        assert all(len(home) == 1 for home in homes.values())
        assert len(set.union(*homes.values())) == 2


def test_a_replica_that_dies_is_passed_over(pair: tuple[Server, Server], tmp_path: Path) -> None:
    with (
        engines.standin(tmp_path, *FAST, "--replica", "c") as mortal,
        router(tmp_path, "round-robin", pair[0], mortal) as server,
    ):
        address = f"127.0.0.1:{mortal.port}"
        assert {served_by(server, {"prompt": "a", "max_tokens": 1}) for _ in range(4)} == {"a", "c"}
        with closing(connect(server)) as first, closing(connect(server)) as second:
            heads = {}
            for connection in (first, second):
                connection.sendall(raw_request(COMPLETIONS, {"prompt": "a", "max_tokens": 4000, "stream": True}))
                heads[b"x-served-by: c" in connection.recv(1000)] = connection
            os.kill(mortal.pid, signal.SIGKILL)
            with contextlib.suppress(ConnectionResetError):
                assert not read_all(heads[True]).endswith(b"0\r\n\r\n")  # cut, and it looks cut
        wait_for(lambda: metric(server, "cliffwatch_router_replica_healthy", replica=address) == 0)
        assert {served_by(server, {"prompt": "a", "max_tokens": 1}) for _ in range(6)} == {"a"}


def test_with_no_replica_left_it_says_so(tmp_path: Path) -> None:
    port = free_port()
    command = [Path(sys.executable).with_name("cliffwatch"), "engine", "route", "--port", str(port)]
    with subprocess.Popen(
        [str(part) for part in command] + [f"127.0.0.1:{free_port()}"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert f"router: http://127.0.0.1:{port} round-robin over 127.0.0.1:" in process.stdout.readline()
        server = Server(url=f"http://127.0.0.1:{port}", pid=process.pid, log=tmp_path)
        status, body = call(server, COMPLETIONS, {"prompt": "a"})
        assert (status, body["error"]["message"]) == (503, "no replica is there to answer")
        assert exchange(server, b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 503"
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


class Silent(BaseHTTPRequestHandler):
    """Says that it is well, and closes the connection on every request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def test_a_replica_that_closes_without_an_answer_is_a_502(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as silent:
        thread = threading.Thread(target=silent.serve_forever, daemon=True)
        thread.start()
        port = silent.server_address[1]
        with router(tmp_path, "round-robin", Server(f"http://127.0.0.1:{port}", 0, tmp_path)) as server:
            for _ in range(3):
                status, body = call(server, COMPLETIONS, {"prompt": "a"})
                assert (status, body["error"]["code"]) == (502, 502)
            assert metric(server, "cliffwatch_router_broken_total") == 3
        silent.shutdown()


@pytest.mark.parametrize(
    ("body", "prefix"),
    [
        (b'{"model": "m", "prompt": "hello"}', b'"hello"'),
        (b'{"messages": [{"role": "user", "content": "hi"}]}', b'[{"role": "user", "content": "hi"}]'),
        (b'{"text_input": "hi"}', b'"hi"'),
        (b'{"model": "m"}', b""),
        (b"not json", b""),
        (b"\xff\xfe", b""),
        (b"[1]", b""),
    ],
)
def test_how_a_prompt_begins(body: bytes, prefix: bytes) -> None:
    assert prefix_of(body) == prefix


def test_a_beginning_has_its_bound() -> None:
    assert len(prefix_of(json.dumps({"prompt": "a" * 100_000}).encode())) == PREFIX_BYTES


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["127.0.0.1"], "host:port"),
        (["127.0.0.1:99999"], "host:port"),
        (["127.0.0.1:1", "127.0.0.1:1"], "each once"),
        (["127.0.0.1:1", "--policy", "random"], "least-loaded"),
        (["https://x:1"], "host:port"),
    ],
)
def test_what_cannot_be_routed_is_refused(arguments: list[str], said: str) -> None:
    command = [str(Path(sys.executable).with_name("cliffwatch")), "engine", "route", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
