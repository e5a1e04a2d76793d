"""Whole runs whose clients try again, or leave before the end: what is counted, and where."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections import Counter
from pathlib import Path
from threading import Lock

import pytest
import trustme

from cliffwatch.records.manifest import read_manifest
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import PLANNED
from cliffwatch.report.clients import Cancellations, Retries
from cliffwatch.report.summary import build
from tests.loadgen.scripted import ANSWER, Behaviour, answer_probe, serving, whole
from tests.loadgen.test_access import proxying
from tests.loadgen.test_run import balanced, counter, run, start
from tests.servers.engines import standin

pytestmark = pytest.mark.integration

WORKLOAD = """\
requests: {requests}
arrivals: {{kind: constant, rate: {rate}}}
input_tokens: {{kind: fixed, value: 32}}
output_tokens: {{kind: fixed, value: {output}}}
batch: {{sizes: [1]}}
endpoint: completions
cold_start: {{requests: 0}}
"""


def write(folder: Path, name: str, extra: str, *, requests: int, rate: float, output: int = 2) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(WORKLOAD.format(requests=requests, rate=rate, output=output) + extra)
    return path


def throttling(refusals: int, service_s: float) -> tuple[Behaviour, Counter[bytes]]:
    """Refuses each logical request so often with `Retry-After: 2`, then serves it; counts attempts by request id."""
    seen: Counter[bytes] = Counter()
    lock = Lock()

    def behave(sock: socket.socket, request: bytes) -> None:
        found = re.search(rb"X-Request-Id: (\S+)", request)
        if answer_probe(sock, request):
            return
        if found is not None:
            with lock:
                seen[found[1]] += 1
            if seen[found[1]] <= refusals:
                sock.sendall(whole("429 Too Many Requests", b"{}", "application/json", "retry-after: 2"))
            else:
                time.sleep(service_s)
                sock.sendall(ANSWER)

    return behave, seen


def test_throttled_twice_then_served_keeps_service_and_total_apart_and_a_budget_ends_the_rest(tmp_path):
    retries = "retries: {{attempts: {}, budget: 10s}}\n"
    served, served_seen = throttling(2, 0.3)
    refused, refused_seen = throttling(10**6, 0)
    with serving(served) as good, serving(refused) as bad:
        runs = [
            start(write(tmp_path, name, retries.format(attempts), requests=6, rate=20),
                  "--target", f"http://127.0.0.1:{port}", "--out", tmp_path / name, "--workers", 2, "--no-report")
            for name, port, attempts in (("served", good.port, 3), ("refused", bad.port, 99))
        ]  # fmt: skip
        for process in runs:
            process.communicate(timeout=90)

    assert balanced(tmp_path / "served") == {"ok": 6}
    assert set(served_seen.values()) == {3} and len(served_seen) == 6
    query = "SELECT attempts, attempt_statuses, e2e_s, total_s, e2e_user_s, dispatch_lag_s FROM requests"
    for attempts, statuses, service_s, total_s, user_s, lag_s in RunReader(tmp_path / "served").fetch(query):
        assert (attempts, statuses) == (3, [429, 429, 200])
        assert service_s == pytest.approx(0.3, abs=0.1)
        assert total_s == pytest.approx(4.3, abs=0.2)
        assert user_s >= total_s and lag_s < 0.5
    report = build(tmp_path / "served")
    assert report.retries == Retries(n=6, retried=6, retried_ok=6, attempts=18)

    assert balanced(tmp_path / "refused") == {"http_429": 6}
    # at 0, 2, 4, 6 and 8 s; the wait to 10 s would pass the budget
    assert set(refused_seen.values()) == {5}
    for attempts, ended_s in RunReader(tmp_path / "refused").fetch(
        "SELECT attempts, (ended_ns - attempt_sent_ns[1]) / 1e9 FROM requests"
    ):
        assert (attempts, ended_s) == (5, pytest.approx(8, abs=0.3))


def test_users_leave_as_planned_the_engine_stops_for_them_and_nothing_is_cut_short(tmp_path):
    leaving = "cancellations: {share: 50%, since: first_token, after: {kind: fixed, value: 300ms}}\n"
    names = ("vllm:request_success_total", "vllm:generation_tokens_total")
    with standin(tmp_path / "engine") as engine:
        workload = write(tmp_path, "leaving", leaving, requests=40, rate=20, output=400)
        before = [counter(engine.url, name) for name in names]
        code, out, _ = run(workload, "--target", engine.url, "--out", tmp_path / "run", "--workers", 2)
        success, tokens = (counter(engine.url, name) - was for name, was in zip(names, before, strict=True))
        assert counter(engine.url, "vllm:num_requests_running") == 0
        assert counter(engine.url, "vllm:kv_cache_usage_perc") == 0
    assert code == 0
    manifest, counts = read_manifest(tmp_path / "run"), balanced(tmp_path / "run")
    assert (manifest.state, manifest.partial_reason) == ("complete", None)
    left = counts["cancelled"]
    assert counts == {"ok": 40 - left, "cancelled": left} and 8 <= left <= 32
    assert build(tmp_path / "run").cancellations == Cancellations(
        n=40, planned=left, left=left, ended_ok=0, ended_otherwise=0
    )
    assert f"the users of {left} of 40 requests were to leave: {left} left" in out
    assert success == 40 - left
    reader = RunReader(tmp_path / "run")
    assert reader.fetch("SELECT DISTINCT error FROM requests WHERE outcome = 'cancelled'") == [(PLANNED,)]
    ((received, shortest_s, most),) = reader.fetch(
        "SELECT sum(output_tokens), min((ended_ns - first_token_ns) / 1e9) FILTER (outcome = 'cancelled'),"
        " max(output_tokens) FILTER (outcome = 'cancelled') FROM requests"
    )
    assert shortest_s >= 0.3 and most < 400
    assert received <= tokens < 40 * 400  # the engine stopped soon after each of them left


def test_the_same_users_leave_whatever_the_number_of_workers(tmp_path):
    leaving = "cancellations: {share: 50%, since: send, after: {kind: uniform, min: 0s, max: 1s}}\n"
    behave, _ = throttling(0, 0.0)
    found = []
    with serving(behave) as server:
        for workers in (1, 3):
            folder = tmp_path / str(workers)
            workload = write(tmp_path, "leaving", leaving, requests=30, rate=100)
            run(workload, "--target", f"http://127.0.0.1:{server.port}", "--out", folder, "--workers", workers)
            found.append(RunReader(folder).fetch("SELECT request_id, cancel_after_s FROM requests ORDER BY 1"))
    assert found[0] == found[1]
    assert 5 < sum(at is not None for _, at in found[0]) < 25


def test_prompts_over_the_models_context_are_shortened_before_the_run_and_counted(tmp_path):
    with standin(tmp_path / "engine", "--max-model-len", "4096", "--speed", "50") as engine:
        path = write(tmp_path, "long", "", requests=20, rate=20, output=512)
        path.write_text(path.read_text().replace("value: 32}", "value: 3590}"))
        code, _, err = run(path, "--target", engine.url, "--out", tmp_path / "long")
        assert code == 0
        fits = write(tmp_path, "fits", "", requests=5, rate=20, output=1)
        fits.write_text(fits.read_text().replace("value: 32}", "value: 4095}"))
        run(fits, "--target", engine.url, "--out", tmp_path / "fits", "--no-report")
    note = "20 of 20 planned requests are longer than the model takes (4096 tokens"
    assert note in err and any(note in text for text in read_manifest(tmp_path / "long").warnings)
    assert balanced(tmp_path / "long") == {"ok": 20} and balanced(tmp_path / "fits") == {"ok": 5}
    sizes = "SELECT DISTINCT server_input_tokens, output_tokens, len(warnings) FROM requests"
    assert RunReader(tmp_path / "long").fetch(sizes) == [(3584, 512, 1)]
    assert RunReader(tmp_path / "fits").fetch(sizes) == [(4095, 1, None)]
    assert read_manifest(tmp_path / "fits").warnings == ()


def test_a_run_shows_its_certificate_and_password_to_an_encrypted_target_behind_a_proxy(tmp_path):
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("target.test").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("client@example.com").private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    (tmp_path / "basic").write_text("ann:s3cret\n")
    behave, _ = throttling(0, 0.0)
    workload = write(tmp_path, "far", "", requests=12, rate=20)
    with serving(behave, tls=context) as target, proxying({"target.test:443": target.port}) as (port, heads):
        _, out, err = run(
            workload, "--target", "https://target.test", "--out", tmp_path / "run", "--workers", 2, "--json",
            "--ca-file", tmp_path / "ca.pem", "--client-cert", tmp_path / "client.pem",
            "--basic-auth-file", tmp_path / "basic",
            HTTPS_PROXY=f"http://bob:pr0xy@127.0.0.1:{port}", CLIFFWATCH_HEADERS="api-key: k3y",
        )  # fmt: skip
        posts = [request for request in target.requests if b"X-Request-Id" in request]
    assert balanced(tmp_path / "run") == {"ok": 12}
    assert len(posts) == 12
    for request in target.requests:
        assert b"\r\nAuthorization: Basic YW5uOnMzY3JldA==\r\napi-key: k3y\r\n" in request
        assert b"Proxy-Authorization" not in request
    assert all(head.startswith(b"CONNECT target.test:443 ") for head in heads)
    assert any("proxy 127.0.0.1" in text for text in read_manifest(tmp_path / "run").warnings)
    written = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    for secret in (b"s3cret", b"YW5u", b"k3y", b"pr0xy"):
        assert secret not in written and secret.decode() not in out + err
