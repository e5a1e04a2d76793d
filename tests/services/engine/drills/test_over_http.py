"""Every kind of fault as clients and scrapers meet it, asked for by the API and by a file."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers import engines
from tests.servers.processes import Server
from tests.services.engine.conftest import call, connect, exchange, metric, raw_request, read_all, wait_for

COMPLETIONS = "/v1/completions"
FAULTS = "/admin/faults"


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Steps of about 5 ms / 50, and 1000 blocks of cache or so that matter."""
    options = ("--speed", "50", "--admin", "--max-num-seqs", "4", "--max-model-len", "16k")
    with engines.standin(tmp_path_factory.mktemp("drilled"), *options) as server:
        yield server
        assert "Traceback" not in server.log.read_text(encoding="utf-8")


@pytest.fixture
def drilled(standin: Server) -> Iterator[Server]:
    """With no fault before and after."""
    yield standin
    call(standin, FAULTS, b"", method="DELETE")
    wait_for(lambda: _status(standin, "/health") == 200)


def fault(server: Server, **written: Any) -> int:
    status, body = call(server, FAULTS, written)
    assert status == 201, body
    number = body["id"]
    assert isinstance(number, int)
    return number


def _status(server: Server, path: str) -> int | None:
    """None where nobody is there, or the connection is cut."""
    try:
        answer = exchange(server, raw_request(path, b"", method="GET", headers="connection: close\r\n"))
    except ConnectionError:
        return None
    return int(answer.split(b" ")[1]) if answer else None


def complete(server: Server, tokens: int = 4, **more: Any) -> tuple[int, Any]:
    return call(server, COMPLETIONS, {"prompt": "hello world", "max_tokens": tokens, **more})


def stream(server: Server, tokens: int) -> bytes:
    """All bytes of a streamed answer until the connection ends, however it does."""
    body = {"prompt": "hello", "max_tokens": tokens, "stream": True}
    with closing(connect(server)) as connection:
        connection.sendall(raw_request(COMPLETIONS, body, headers="connection: close\r\n"))
        try:
            return read_all(connection)
        except ConnectionError:
            return b""


def took_s(server: Server, tokens: int) -> float:
    started_s = time.monotonic()
    assert complete(server, tokens)[0] == 200
    return time.monotonic() - started_s


def test_a_slow_gpu_takes_longer_and_is_listed(drilled: Server) -> None:
    usual_s = min(took_s(drilled, 50) for _ in range(3))
    number = fault(drilled, kind="slow-gpu", factor=30)
    assert min(took_s(drilled, 50) for _ in range(2)) > 5 * usual_s
    _, listed = call(drilled, FAULTS, b"", method="GET")
    (one,) = (each for each in listed["faults"] if each["id"] == number)
    assert (one["kind"], one["state"], one["factor"], one["ends_in_s"]) == ("slow-gpu", "active", 30, None)
    assert call(drilled, f"{FAULTS}?id={number}", b"", method="DELETE") == (200, {"cleared": 1})
    assert min(took_s(drilled, 50) for _ in range(3)) < 5 * usual_s


def test_a_leak_takes_the_cache_and_preempts(drilled: Server) -> None:
    before = metric(drilled, "vllm:num_preemptions_total")
    with closing(connect(drilled)) as connection:
        body = {"prompt": ["a", "b"], "max_tokens": 16000, "stream": True}
        connection.sendall(raw_request(COMPLETIONS, body))
        wait_for(lambda: metric(drilled, "vllm:num_requests_running") == 2)
        fault(drilled, kind="memory-leak", blocks_per_minute=6e6)
        wait_for(lambda: metric(drilled, "vllm:kv_cache_usage_perc") > 0.99)
        wait_for(lambda: metric(drilled, "vllm:num_preemptions_total") > before)
    call(drilled, FAULTS, b"", method="DELETE")
    wait_for(lambda: metric(drilled, "vllm:kv_cache_usage_perc") < 0.01)


def test_a_hang_keeps_streams_open_and_goes_on_where_it_stood(drilled: Server) -> None:
    with closing(connect(drilled)) as connection:
        body = {"prompt": "a", "max_tokens": 4000, "stream": True}
        connection.sendall(raw_request(COMPLETIONS, body, headers="connection: close\r\n"))
        wait_for(lambda: metric(drilled, "vllm:num_requests_running") == 1)
        fault(drilled, kind="hang")
        generated = metric(drilled, "vllm:generation_tokens_total")
        time.sleep(0.1)
        assert metric(drilled, "vllm:generation_tokens_total") == generated
        assert metric(drilled, "vllm:num_requests_running") == 1
        assert _status(drilled, "/health") == 200
        call(drilled, FAULTS, b"", method="DELETE")
        whole = read_all(connection)
    assert whole.count(b'"text":') == 4000
    assert b"[DONE]" in whole


def test_a_share_of_requests_is_refused(drilled: Server) -> None:
    fault(drilled, kind="errors", share="50%", status=503)
    statuses = [complete(drilled, 1)[0] for _ in range(60)]
    # Binomial(60, 0.5): outside of 12 to 48 with a chance of 2e-6; the draws are seeded, so it is the same each time
    assert 12 <= statuses.count(503) <= 48
    assert set(statuses) == {200, 503}


def test_an_error_within_a_stream(drilled: Server) -> None:
    before = metric(drilled, "vllm:request_success_total", finished_reason="error")
    fault(drilled, kind="stream-errors", share=1, after_tokens=3)
    answer = stream(drilled, 50)
    assert answer.count(b'"text":') == 3
    assert b'data: {"error":{"message":"The engine failed' in answer
    assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert complete(drilled, 50)[0] == 500
    assert complete(drilled, 2)[0] == 200  # it ends before its fault
    assert metric(drilled, "vllm:request_success_total", finished_reason="error") == before + 2
    assert metric(drilled, "vllm:num_requests_running") == 0


@pytest.mark.parametrize("tokens", [0, 3])
def test_a_connection_that_is_dropped(drilled: Server, tokens: int) -> None:
    fault(drilled, kind="dropped-connections", share=1, after_tokens=tokens)
    answer = stream(drilled, 50)
    assert answer.count(b'"text":') == tokens
    assert b"[DONE]" not in answer
    wait_for(lambda: metric(drilled, "vllm:num_requests_running") == 0)


def test_a_crash_cuts_counts_from_nothing_and_starts_cold(drilled: Server) -> None:
    complete(drilled, 5)
    born_s = metric(drilled, "process_start_time_seconds")
    with closing(connect(drilled)) as connection:
        body = {"prompt": "a", "max_tokens": 16000, "stream": True}
        connection.sendall(raw_request(COMPLETIONS, body))
        wait_for(lambda: metric(drilled, "vllm:num_requests_running") == 1)
        fault(drilled, kind="crash", down=0.3, load=0.3, warm_up=0)
        assert b"[DONE]" not in read_all(connection)
    assert _status(drilled, "/health") is None
    wait_for(lambda: _status(drilled, "/health") == 503)
    assert (_status(drilled, "/metrics"), complete(drilled)[0]) == (503, 503)
    assert call(drilled, FAULTS, b"", method="GET")[0] == 200
    wait_for(lambda: _status(drilled, "/health") == 200)
    assert metric(drilled, "vllm:generation_tokens_total") == 0
    assert metric(drilled, "vllm:num_requests_running") == 0
    assert metric(drilled, "process_start_time_seconds") > born_s
    complete(drilled, 5)
    assert metric(drilled, "vllm:generation_tokens_total") == 5


def test_an_upgrade_has_another_version_s_names(drilled: Server) -> None:
    assert metric(drilled, "vllm:kv_cache_usage_perc") == 0
    fault(drilled, kind="upgrade", version="0.9.0", down=0, load=0, warm_up=0)
    wait_for(lambda: call(drilled, "/version", b"", method="GET")[1]["version"].startswith("0.9.0"))
    text = exchange(drilled, raw_request("/metrics", b"", method="GET", headers="connection: close\r\n")).decode()
    assert "vllm:gpu_cache_usage_perc{" in text
    assert "vllm:kv_cache_usage_perc" not in text
    assert complete(drilled, 0)[1]["object"] == "error"  # flat, as it was then
    fault(drilled, kind="upgrade", version="0.33.0", down=0, load=0, warm_up=0)
    wait_for(lambda: "kv_cache_usage_perc" in str(exchange(
        drilled, raw_request("/metrics", b"", method="GET", headers="connection: close\r\n")
    )))  # fmt: skip


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "fault: must be a mapping"),
        ({"kind": "fire"}, "fault.kind: unknown"),
        ({"kind": "slow-gpu"}, "fault.factor: is missing"),
        ({"kind": "slow-gpu", "factor": "nan"}, "fault.factor: cannot be used"),
        ({"kind": "hang", "lasts": 1e300}, "fault.lasts: cannot be used"),
        ({"kind": "upgrade", "version": "9.9"}, "version: is no version of vLLM that is known"),
    ],
)
def test_faults_that_cannot_be_are_refused(drilled: Server, body: Any, words: str) -> None:
    status, answer = call(drilled, FAULTS, body)
    assert status == 400
    assert words in answer["error"]["message"]


def test_numbers_that_are_none(drilled: Server) -> None:
    assert call(drilled, f"{FAULTS}?id=9999", b"", method="DELETE")[0] == 404
    assert call(drilled, f"{FAULTS}?id=-1", b"", method="DELETE")[0] == 400
    assert call(drilled, f"{FAULTS}?id=", b"", method="DELETE")[0] == 400


def test_web_pages_may_not(drilled: Server) -> None:
    assert call(drilled, FAULTS, {"kind": "hang"}, headers="origin: http://evil.example\r\n")[0] == 403


def test_without_admin_there_is_none(engine: Server) -> None:
    assert call(engine, FAULTS, {"kind": "hang"})[0] == 404


def test_a_drill_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "drill.yaml"
    faults = [{"kind": "cold-start", "load": "700ms", "warm_up": 0}, {"kind": "errors", "share": 1, "at": 0.8}]
    path.write_text(json.dumps({"faults": faults}))
    with engines.standin(tmp_path, "--drill", str(path)) as server:  # it waits until /health says 200
        wait_for(lambda: complete(server, 1)[0] == 500)
        assert "drill: cold-start begins" in server.log.read_text()
        assert call(server, FAULTS, b"", method="GET")[0] == 404
