"""`cliffwatch run` as a person starts it: whole runs, and every way in which one can end or not begin."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader
from loadgen.processes import LOCUSTFILE
from tests.loadgen.scripted import END, STREAM_HEAD, Served, answer_probe, event, serving, usage, whole
from tests.servers.engines import standin
from tests.servers.processes import descendants, free_port, get_text

pytestmark = pytest.mark.integration

WORKLOAD = """\
name: small
requests: {requests}
arrivals: {{kind: poisson, rate: {rate}}}
input_tokens: {{kind: uniform, min: 32, max: 200}}
output_tokens: {{kind: uniform, min: 2, max: 12}}
batch: {{sizes: [1, 2, 4], token_budget: 400}}
cold_start: {{requests: 1}}
"""


def write_workload(folder: Path, requests: int = 80, rate: float = 40) -> Path:
    path = folder / "workload.yaml"
    path.write_text(WORKLOAD.format(requests=requests, rate=rate))
    return path


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    clean = {key: value for key, value in os.environ.items() if key not in {"CLIFFWATCH_API_KEY", "OPENAI_API_KEY"}}
    return subprocess.Popen(
        [sys.executable, "-m", "cliffwatch", "run", *map(str, arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean | environment,
    )  # fmt: skip


def run(*arguments: object, **environment: str) -> tuple[int, str, str]:
    with start(*arguments, **environment) as process:
        out, err = process.communicate(timeout=100)
    assert "Traceback" not in err
    return process.returncode, out, err


def balanced(run_dir: Path) -> dict[str, int]:
    """The accounting, checked against the rows."""
    manifest, reader = read_manifest(run_dir), RunReader(run_dir)
    assert manifest.accounting is not None and manifest.accounting.balanced
    with reader.connect() as connection:
        counts = dict(connection.execute("SELECT outcome, count(*) FROM requests GROUP BY 1").fetchall())
        ids = connection.execute("SELECT count(DISTINCT request_id) FROM requests").fetchone()
    assert counts == {outcome.value: count for outcome, count in manifest.accounting.by_outcome.items()}
    assert ids == (manifest.accounting.issued,)
    return counts


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return sorted(
        pid for pid in descendants(process.pid) if b"locustfile.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


def rows_so_far(run_dir: Path) -> int:
    return sum(
        len(re.findall(rb'"outcome"', path.read_bytes())) for path in (run_dir / "shards").glob("*.journal")
    ) + sum(1 for _ in (run_dir / "shards").glob("*.parquet"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standin(tmp_path_factory.mktemp("engine"), "--speed", "20") as server:
        yield server.url


def counter(engine: str, name: str) -> float:
    text = get_text(f"{engine}/metrics")
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


def test_two_workers_send_the_schedule_once_and_agree_with_the_engine(engine, tmp_path):
    names = ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    before = [counter(engine, name) for name in names]
    code, out, _ = run(
        write_workload(tmp_path), "--target", engine, "--out", tmp_path / "run", "--workers", 2, "--json"
    )
    assert code == 0
    assert balanced(tmp_path / "run") == {"ok": 80}
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.state, manifest.prompt_method) == (RunState.COMPLETE, "server_tokenize")
    assert sorted(worker.rows for worker in manifest.workers) == [40, 40]
    assert json.loads(out)["manifest"]["run_id"] == manifest.run_id
    with RunReader(tmp_path / "run").connect() as connection:
        prompts, inputs, outputs, wrong = connection.execute(
            "SELECT sum(batch), sum(server_input_tokens), sum(output_tokens),"
            " count(*) FILTER (server_input_tokens <> input_tokens * batch OR built_input_tokens <> server_input_tokens"
            " OR output_tokens <> max_output_tokens * batch OR sent_ns < intended_ns) FROM requests"
        ).fetchone()
    assert wrong == 0
    # the engine counts each prompt of a batch as a request of its own
    assert [counter(engine, name) - was for name, was in zip(names, before, strict=True)] == [prompts, inputs, outputs]


def test_plain_locust_is_the_same_run(engine, tmp_path):
    workload = write_workload(tmp_path)
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--cliffwatch-workload", workload]
    command += ["--host", engine]  # Locust's own name for it; its web page has the same field
    done = subprocess.run(
        list(map(str, command)), env=os.environ | {"CLIFFWATCH_OUT": str(tmp_path / "run")},
        capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert balanced(tmp_path / "run") == {"ok": 80}
    table = done.stderr + done.stdout  # Locust's own, which is not the run's
    assert re.search(r"TTFT +requests +80 +0", table) and re.search(r"E2E +requests +80 +0", table)


def test_plain_locust_says_what_is_missing(tmp_path):
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 2
    assert "workload: is missing" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_run_leaves_at_once_and_nothing_behind(tmp_path, number):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        target = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = start(write_workload(tmp_path), "--target", target, "--out", tmp_path / "run", "--workers", 1)
        _connection = silent.accept()  # held: it closes when nobody does
        process.send_signal(number)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in err and "interrupted before the run began" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_joining_says_what_it_waits_for_and_that_it_was_interrupted(number):
    process = start("--master", "127.0.0.1:1", "--workers", "1")
    assert process.stderr is not None
    assert "waiting for a run to join at 127.0.0.1:1" in process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert err == "cliffwatch: interrupted while waiting for a run to join at 127.0.0.1:1\n"


def test_waiting_for_workers_is_interrupted_in_words_and_leaves_nothing(engine, tmp_path):
    bind = f"127.0.0.1:{free_port()}"
    arguments = (write_workload(tmp_path), "--target", engine, "--out", tmp_path / "run", "--expect", 1, "--bind", bind)
    process = start(*arguments, "--workers", 0)
    assert process.stderr is not None
    assert "waiting for 1 workers" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "cliffwatch: interrupted before the run began\n")
    assert not (tmp_path / "run").exists()


def test_lent_workers_end_what_is_in_flight_when_they_are_interrupted(engine, tmp_path):
    bind = f"127.0.0.1:{free_port()}"
    master = start(
        write_workload(tmp_path, requests=4000), "--target", engine, "--out", tmp_path / "run", "--expect", 1,
        "--workers", 1, "--bind", bind, "--no-report",
    )  # fmt: skip
    lent = start("--master", bind)
    assert wait_for(lambda: rows_so_far(tmp_path / "run") > 20, timeout_s=60)
    lent.send_signal(signal.SIGTERM)
    _, err = lent.communicate(timeout=60)
    assert lent.returncode == 130 and "interrupted (SIGTERM) while workers were lent" in err
    assert "Traceback" not in err and "KeyboardInterrupt" not in err
    master.send_signal(signal.SIGINT)
    assert master.communicate(timeout=60) and master.returncode == 130
    assert set(balanced(tmp_path / "run")) <= {"ok", "cancelled", "lost"}


def test_a_worker_that_is_killed_loses_what_it_had_and_the_run_goes_on(engine, tmp_path):
    workload = write_workload(tmp_path, requests=200, rate=25)
    process = start(workload, "--target", engine, "--out", tmp_path / "run", "--workers", 2)
    assert wait_for(lambda: rows_so_far(tmp_path / "run") > 10, timeout_s=60)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=90)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert counts["ok"] + counts["lost"] == 200
    assert counts["lost"] > 20 and counts["ok"] > 100
    assert sorted(worker.state for worker in manifest.workers) == ["finished", "lost"]
    assert "died or was stopped, the others went on" in out and "lost" in out
    assert process.returncode == 3  # a twentieth lost is another load than was asked for


def test_when_the_master_is_killed_workers_end_and_their_rows_stay(engine, tmp_path):
    workload = write_workload(tmp_path, requests=4000, rate=25)
    process = start(workload, "--target", engine, "--out", tmp_path / "run", "--workers", 2)
    assert wait_for(lambda: rows_so_far(tmp_path / "run") > 10, timeout_s=60)
    workers = workers_of(process)
    process.kill()
    process.communicate()
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), timeout_s=15)
    assert RunReader(tmp_path / "run").count() > 10
    code, _, err = run("--recover", tmp_path / "run", "--no-report")
    counts = balanced(tmp_path / "run")
    assert (code, set(counts)) in ((0, {"ok", "cancelled"}), (0, {"ok"}))
    assert "recovered" in err
    refused(2, "closed already", "--recover", tmp_path / "run")


# ends


@pytest.fixture
def endless() -> Iterator[Served]:
    """A server whose streams begin and never end."""

    def behave(sock: socket.socket, request: bytes) -> None:
        if not answer_probe(sock, request):
            sock.sendall(STREAM_HEAD)
            for _ in range(600):
                sock.sendall(event())
                time.sleep(0.1)
            sock.sendall(event(finish="length") + usage(5, 601) + END)

    with serving(behave) as served:
        yield served


@pytest.mark.parametrize(("number", "again"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGINT, True)])
def test_an_interrupt_drains_cancels_and_leaves_a_valid_partial_run(endless, tmp_path, number, again):
    workload = write_workload(tmp_path, requests=1000, rate=10)
    drain = "30s" if again else "1s"
    url = f"http://127.0.0.1:{endless.port}"
    process = start(workload, "--target", url, "--out", tmp_path / "run", "--workers", 2, "--drain", drain)
    streams = lambda: sum(b"completions" in request for request in endless.requests)  # noqa: E731
    assert wait_for(lambda: streams() >= 12, timeout_s=60)
    process.send_signal(number)
    if again:
        time.sleep(1)
        process.send_signal(number)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert process.returncode == 130
    assert "Traceback" not in err
    manifest, counts = read_manifest(tmp_path / "run"), balanced(tmp_path / "run")
    assert (manifest.state, manifest.partial_reason) == (RunState.PARTIAL, f"interrupted ({number.name})")
    assert counts == {"cancelled": streams()}
    assert "partial" in out


def test_ctrl_c_before_the_load_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = start(write_workload(tmp_path), "--target", target, "--out", tmp_path / "run")
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


# refusals


def refused(code: int, part: str, *arguments: object, **environment: str) -> None:
    found, out, err = run(*arguments, **environment)
    assert (found, out) == (code, "")
    lines = [line for line in err.strip().splitlines() if not line.startswith("cliffwatch: asking ")]  # of a slow start
    assert len(lines) == 1
    assert part in lines[0]


def test_a_folder_that_is_taken_or_cannot_be_is_refused_before_the_target_is_asked(tmp_path):
    nobody = "http://127.0.0.1:9"
    workload = write_workload(tmp_path)
    taken = tmp_path / "taken"
    (taken / "shards").mkdir(parents=True)
    refused(2, "already holds a run", workload, "--target", nobody, "--out", taken)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("mine")
    refused(2, "holds other files; got 'letter.txt'", workload, "--target", nobody, "--out", tmp_path / "home")
    refused(2, "is not a folder", workload, "--target", nobody, "--out", workload / "run")
    refused(2, "workload.yaml", tmp_path / "absent-workload.yaml", "--target", nobody, "--out", tmp_path / "run")
    refused(2, "target: is missing", workload, "--out", tmp_path / "run")
    refused(2, "--rate", workload, "--target", nobody, "--out", tmp_path / "run", "--rate", "fast")
    refused(2, "slo.yaml", workload, "--target", nobody, "--out", tmp_path / "run", "--slo", tmp_path / "slo.yaml")
    refused(2, "--drain", workload, "--target", nobody, "--out", tmp_path / "run", "--drain", "long")
    refused(2, "--master", workload, "--master", "h")
    refused(2, "leaves nobody to send", workload, "--target", nobody, "--out", tmp_path / "run", "--workers", 0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bind = f"127.0.0.1:{listener.getsockname()[1]}"
        refused(2, "in use", workload, "--target", nobody, "--out", tmp_path / "run", "--bind", bind)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "taken", "workload.yaml"]


def test_a_target_that_is_down_or_cannot_be_trusted_has_exit_code_4(tmp_path):
    workload, out = write_workload(tmp_path), tmp_path / "run"
    refused(4, "refused", workload, "--target", "http://127.0.0.1:9", "--out", out)
    refused(4, "cannot be resolved", workload, "--target", "http://no-such-host.invalid", "--out", out)
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    page = whole("200 OK", b"<html></html>", "text/html")
    with serving(lambda sock, _: sock.sendall(page), tls=context) as server:
        target = f"https://127.0.0.1:{server.port}"
        refused(4, "--ca-file", workload, "--target", target, "--out", out)
        assert server.requests == []
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        refused(2, "not JSON", workload, "--target", target, "--out", out, "--ca-file", tmp_path / "ca.pem")
        refused(2, "not JSON", workload, "--target", target, "--out", out, "--insecure")
    assert not out.exists()


def test_a_token_that_is_refused_or_wrong_is_never_shown(tmp_path):
    denied = whole("401 Unauthorized", b'{"error":{"message":"Invalid key"}}')
    with serving(lambda sock, _: sock.sendall(denied)) as server:
        arguments = (write_workload(tmp_path), "--target", f"http://127.0.0.1:{server.port}", "--out", tmp_path / "run")
        code, out, err = run(*arguments, CLIFFWATCH_API_KEY="s3cret-value")
        assert (code, "Invalid key" in err) == (2, True)
        assert "s3cret-value" not in out + err
        assert b"Bearer s3cret-value" in server.requests[0]
        code, _, err = run(*arguments, CLIFFWATCH_API_KEY="s3cret value")
        assert (code, "s3cret" in err) == (2, False)
