"""Whole runs of other shapes: mixes as a server sees them, sessions against the stand-in engine, and their ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader
from tests.loadgen.scripted import DONE, STREAM_HEAD, Served, chunk, serving, whole
from tests.loadgen.test_run import balanced, counter, rows_so_far, run, start, workers_of
from tests.servers.engines import standin

pytestmark = pytest.mark.integration

MODELS = [
    {"id": "base", "owned_by": "vllm", "max_model_len": 4096},
    {"id": "lora", "owned_by": "vllm", "parent": "base"},
    {"id": "small", "owned_by": "vllm", "max_model_len": 60},
]


def events(*bodies: object) -> bytes:
    return b"".join(chunk(b"data: " + json.dumps(body).encode() + b"\n\n") for body in bodies)


def behave(sock: socket.socket, request: bytes) -> None:
    """vLLM with an adapter and a second model; a template of four tokens."""
    head, _, data = request.partition(b"\r\n\r\n")
    if b"/v1/models" in head:
        sock.sendall(whole("200 OK", json.dumps({"data": MODELS}).encode()))
        return
    body = json.loads(data) if data else {}
    texts = [body["prompt"]] if "prompt" in body else [one["content"] for one in body.get("messages", [])]
    count = sum(len(text.split()) for text in texts) + (0 if "prompt" in body else 4)
    if b"/tokenize" in head:
        sock.sendall(whole("200 OK", json.dumps({"count": count}).encode()))
        return
    usage = {"prompt_tokens": count, "completion_tokens": body.get("max_tokens")}
    word = {"choices": [{"index": 0, "delta": {"content": " w"}, "finish_reason": None}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    counted = {"choices": [], "usage": usage}
    sock.sendall(STREAM_HEAD + events(*[word] * body.get("max_tokens", 0), end, counted) + chunk(DONE) + b"0\r\n\r\n")


@pytest.fixture(scope="module")
def adapters() -> Iterator[Served]:
    with serving(behave) as served:
        yield served


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standin(tmp_path_factory.mktemp("engine"), "--speed", "20", "--max-model-len", "400") as server:
        yield server.url


def write(folder: Path, **changes: Any) -> Path:
    workload = {
        "arrivals": {"kind": "poisson", "rate": 40},
        "input_tokens": {"kind": "uniform", "min": 30, "max": 90},
        "output_tokens": {"kind": "uniform", "min": 2, "max": 12},
        "batch": {"sizes": [1]},
        "cold_start": {"requests": 1},
    }
    path = folder / "workload.yaml"
    path.write_text(yaml.safe_dump(workload | changes))
    return path


def test_a_server_gets_the_mix_that_the_rows_tell(adapters: Served, tmp_path: Path) -> None:
    workload = write(
        tmp_path,
        requests=120,
        models=[{"name": "base", "weight": 3}, {"name": "lora", "weight": 2}, {"name": "small"}],
        tenants=[{"name": "free"}, {"name": "paid", "header": "X-Plan"}],
        priority=[{"value": 0}, {"value": 5}],
        sampling={"seed": 7, "stop": ["END"], "extra": {"guided_choice": "x"}},
    )
    url = f"http://127.0.0.1:{adapters.port}"
    code, _, err = run(workload, "--target", url, "--out", tmp_path / "run", "--workers", 2)
    assert (code, balanced(tmp_path / "run")) == (0, {"ok": 120}), err
    seen: Counter[tuple[object, ...]] = Counter()
    for request in adapters.requests:
        head, _, data = request.partition(b"\r\n\r\n")
        if b"chat/completions" not in head:
            continue
        body = json.loads(data)
        tenant = re.search(r"\r\n(?:X-Tenant-Id: (free)|X-Plan: (paid))(?:\r\n|$)", head.decode())
        assert tenant is not None
        assert (body["seed"], body["stop"], body["guided_choice"]) == (7, ["END"], "x")
        seen[body["model"], tenant[1] or tenant[2], body["priority"]] += 1
    reader = RunReader(tmp_path / "run")
    rows = reader.fetch("SELECT model, tenant, priority, count(*) FROM requests GROUP BY ALL")
    assert seen == {tuple(key): count for *key, count in rows}
    assert len(seen) == 12
    limited = reader.fetch("SELECT model, max(input_tokens + max_output_tokens) FROM requests GROUP BY 1 ORDER BY 1")
    assert limited[2] == ("small", 60) and limited[0][1] > 60 and limited[1][1] > 60
    assert reader.fetch("SELECT count(*) FROM requests WHERE server_input_tokens <> input_tokens") == [(0,)]
    manifest = read_manifest(tmp_path / "run")
    assert manifest.model == "base+lora+small"
    assert any("(60, 4096 tokens" in warning for warning in manifest.warnings)


def test_models_that_are_not_served_are_refused_before_any_load(adapters: Served, tmp_path: Path) -> None:
    workload = write(tmp_path, requests=9, models=[{"name": "base"}, {"name": "gone"}, {"name": "lost"}])
    before = len(adapters.requests)
    url = f"http://127.0.0.1:{adapters.port}"
    code, _, err = run(workload, "--target", url, "--out", tmp_path / "run")
    assert code == 2
    assert "gone, lost" in err and "base, lora, small" in err
    assert len(adapters.requests) == before + 1  # the list
    assert not (tmp_path / "run").exists()


SESSIONS = {"turns": {"kind": "uniform", "min": 2, "max": 12}, "think_time": {"kind": "exponential", "mean": 0.1}}


@pytest.mark.parametrize("arrivals", [{"kind": "poisson", "rate": 10}, {"kind": "concurrency", "users": 6}])
def test_sessions_grow_to_the_models_limit_and_say_why_they_ended(
    engine: str, tmp_path: Path, arrivals: dict[str, object]
) -> None:
    names = ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    before = [counter(engine, name) for name in names]
    workload = write(tmp_path, requests=160, sessions=SESSIONS, arrivals=arrivals)
    code, _, err = run(workload, "--target", engine, "--out", tmp_path / "run", "--workers", 2)
    assert code == 0, err
    counts = balanced(tmp_path / "run")
    reader = RunReader(tmp_path / "run")
    sums = reader.fetch("SELECT count(*), sum(server_input_tokens), sum(output_tokens) FROM requests")[0]
    assert [counter(engine, name) - was for name, was in zip(names, before, strict=True)] == list(sums)
    assert set(counts) == {"ok"} and counts["ok"] < 160  # turns that do not fit are not issued
    assert reader.fetch("SELECT max(server_input_tokens + output_tokens) <= 400 FROM requests") == [(True,)]
    ended = reader.fetch("SELECT warnings[1] FROM requests WHERE warnings IS NOT NULL")
    assert ended
    early = [
        re.match(r"the session ends (\d+) turns early: the next would take (\d+) tokens", text) for (text,) in ended
    ]
    assert all(match is not None and int(match[2]) > 400 for match in early)
    assert sum(int(match[1]) for match in early if match) + counts["ok"] == 160
    wrong = "SELECT count(*) FROM requests WHERE abs(server_input_tokens - input_tokens) > 2"
    assert reader.fetch(wrong) == [(0,)]
    spread = "SELECT max(n), min(gaps) FROM (SELECT count(DISTINCT worker) n, max(turn) + 1 - count(*) gaps"
    assert reader.fetch(f"{spread} FROM requests GROUP BY session)") == [(1, 0)]


def test_a_worker_killed_amid_sessions_leaves_exact_accounts(engine: str, tmp_path: Path) -> None:
    sessions = {"turns": {"kind": "fixed", "value": 3}, "think_time": "300ms"}
    workload = write(tmp_path, requests=150, sessions=sessions, arrivals={"kind": "constant", "rate": 10})
    process = start(workload, "--target", engine, "--out", tmp_path / "run", "--workers", 2)
    assert wait_for(lambda: rows_so_far(tmp_path / "run") > 10, timeout_s=60)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    process.communicate(timeout=90)
    counts = balanced(tmp_path / "run")
    reader = RunReader(tmp_path / "run")
    # of the dead worker's sessions those that had not begun are lost with their first turn; later turns were no issues
    never = "SELECT count(*), max(turn), count(session) FROM requests WHERE outcome = 'lost' AND sent_ns IS NULL"
    lost, last, known = reader.fetch(never + " AND error LIKE '%never%'")[0]
    assert lost == known > 5 and last == 0
    assert counts["ok"] > 75
    assert reader.fetch("SELECT count(DISTINCT session) FROM requests") == [(50,)]


def test_an_interrupt_between_turns_ends_the_run_at_once(engine: str, tmp_path: Path) -> None:
    sessions = {"turns": {"kind": "fixed", "value": 5}, "think_time": "60s"}
    workload = write(tmp_path, requests=100, sessions=sessions)
    process = start(workload, "--target", engine, "--out", tmp_path / "run", "--workers", 1)
    assert wait_for(lambda: rows_so_far(tmp_path / "run") >= 20, timeout_s=60)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert balanced(tmp_path / "run") == {"ok": 20}
    assert read_manifest(tmp_path / "run").state is RunState.PARTIAL
