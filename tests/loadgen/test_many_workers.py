"""Several workers as one load generator: what the server saw and what the master says agree, to the request."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader
from tests.loadgen.fleet import logging_server, served_ids, write_workload
from tests.loadgen.test_run import balanced, start, workers_of

pytestmark = pytest.mark.integration


def arguments(port: int, folder: Path, *more: object) -> tuple[object, ...]:
    return ("--target", f"http://127.0.0.1:{port}", "--out", folder / "run", "--no-report", *more)


def test_a_stop_right_after_the_last_request_loses_no_count_and_no_token(tmp_path):
    """Locust throws the last reports of its workers away (locustio/locust#3003): here they are waited for."""
    workload = write_workload(tmp_path, "{kind: constant, rate: 40}", requests=41)
    with logging_server(answer_s=1.0) as server:
        process = start(workload, *arguments(server.port, tmp_path, "--workers", 4))
        assert wait_for(lambda: served_ids(server).total() >= 40, timeout_s=60, every_s=0.002)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        served = served_ids(server)
    manifest = read_manifest(tmp_path / "run")
    counts = balanced(tmp_path / "run")
    assert counts == {"ok": len(served)}
    with RunReader(tmp_path / "run").connect() as connection:
        tokens = connection.execute("SELECT sum(output_tokens), sum(server_input_tokens) FROM requests").fetchone()
    assert tokens == (2 * len(served), 5 * len(served))  # what the server put in every usage frame
    assert len(manifest.workers) == 4


def test_every_user_keeps_its_pace_from_the_first_request_on_and_users_do_not_fire_together(tmp_path):
    """Pacing 1 s, answers of 0.4 s: 1.0 s between a user's first two requests, not 1.4 s; 20 users on 2 workers."""
    arrivals = "{kind: concurrency, users: 20, pacing: 1}"
    workload = write_workload(tmp_path, arrivals, duration="3s")
    with logging_server(answer_s=0.4) as server:
        process = start(workload, *arguments(server.port, tmp_path, "--workers", 2))
        process.communicate(timeout=60)
    assert balanced(tmp_path / "run") == {"ok": 60}
    with RunReader(tmp_path / "run").connect() as connection:
        rows = connection.execute("SELECT sent_ns / 1e9 FROM requests ORDER BY intended_ns").fetchall()
    sent_s = [row[0] for row in rows]
    gaps_s = [sent_s[index + 20] - sent_s[index] for index in range(40)]  # users keep their place in the round
    assert sorted(gaps_s)[20] == pytest.approx(1.0, abs=0.02)
    assert min(gaps_s) > 0.8 and max(gaps_s) < 1.3
    per_bin = [sum(0.1 * bin_ <= at_s % 1 < 0.1 * (bin_ + 1) for at_s in sent_s) for bin_ in range(10)]
    assert max(per_bin) <= 12  # of 60: 6 in each, were the machine idle


def test_a_ramp_of_users_is_a_warm_up_that_is_reported_and_no_count_goes_back(tmp_path):
    """Locust resets its statistics when the last user is spawned (locustio/locust#370): here nothing is reset."""
    arrivals = "{kind: concurrency, users: 10, pacing: 1}"
    workload = write_workload(tmp_path, arrivals, duration="12s", warmup="{duration: 5s}")
    with logging_server() as server:
        process = start(workload, *arguments(server.port, tmp_path, "--workers", 2))
        _, err = process.communicate(timeout=60)
        served = served_ids(server).total()
    assert balanced(tmp_path / "run") == {"ok": served} and 115 <= served <= 120
    shown = [int(count) for count in re.findall(r"  ok (\d+) ", err)]
    assert shown == sorted(shown) and len(shown) >= 2 and shown[-1] > 60
    with RunReader(tmp_path / "run").connect() as connection:
        phases = dict(connection.execute("SELECT phase, count(*) FROM requests GROUP BY 1").fetchall())
    assert phases["warmup"] == pytest.approx(50, abs=2) and sum(phases.values()) == served


def test_users_of_a_dead_worker_move_or_are_gone_as_was_chosen(tmp_path):
    arrivals = "{kind: concurrency, users: 6, pacing: 0.5}"
    for choice, low, high in (("redistribute", 108, 121), ("lost", 65, 95)):
        folder = tmp_path / choice
        folder.mkdir()
        workload = write_workload(folder, arrivals, duration="10s")
        with logging_server() as server:
            process = start(workload, *arguments(server.port, folder, "--workers", 2, "--on-worker-loss", choice))
            assert wait_for(lambda served=server: served_ids(served).total() >= 20, timeout_s=60)
            os.kill(workers_of(process)[0], signal.SIGKILL)
            process.communicate(timeout=60)
            served = served_ids(server)
        counts, manifest = balanced(folder / "run"), read_manifest(folder / "run")
        assert set(served.values()) == {1}
        assert low <= served.total() <= high
        assert counts.get("ok", 0) + counts.get("lost", 0) == served.total()
        said = "the rest of its schedule went on" if choice == "redistribute" else "its 3 users were gone from then on"
        assert any(said in text for text in manifest.warnings), manifest.warnings


def test_a_run_folder_that_is_removed_is_not_said_to_be_kept(tmp_path):
    workload = write_workload(tmp_path, "{kind: constant, rate: 20}", requests=2000)
    with logging_server() as server:
        process = start(workload, *arguments(server.port, tmp_path, "--workers", 1))
        assert wait_for(lambda: served_ids(server).total() >= 20, timeout_s=60)
        shutil.rmtree(tmp_path / "run")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "its folder was removed" in err and "recover" not in err and "is kept" not in err
    assert "Traceback" not in err


def test_six_workers_are_one_stream(tmp_path):
    workload = write_workload(tmp_path, "{kind: poisson, rate: 40}", requests=128)
    with logging_server() as server:
        process = start(workload, *arguments(server.port, tmp_path, "--workers", 6))
        process.communicate(timeout=120)
        served = served_ids(server)
    assert balanced(tmp_path / "run") == {"ok": 128}
    assert served == dict.fromkeys(range(128), 1)
    manifest = read_manifest(tmp_path / "run")
    assert manifest.state is RunState.COMPLETE
    assert sorted(worker.rows for worker in manifest.workers) == [21] * 4 + [22] * 2
