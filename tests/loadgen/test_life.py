"""Workers that die, stand still, come back and join late, with real processes and signals; and what is counted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cliffwatch.cli.processes import free_port, wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from tests.loadgen.fleet import logging_server, served_ids, write_workload
from tests.loadgen.scripted import Served
from tests.loadgen.test_run import balanced, start, workers_of
from tests.servers.processes import get_text

pytestmark = pytest.mark.integration


@pytest.fixture
def server() -> Iterator[Served]:
    with logging_server() as served:
        yield served


def begin(server: Served, workload: Path, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    url = f"http://127.0.0.1:{server.port}"
    return start(workload, "--target", url, "--out", folder / "run", "--no-report", *arguments)


def key_file(folder: Path) -> Path:
    path = folder / "key"
    path.touch(mode=0o600)
    path.write_text("a-key-of-which-nobody-outside-this-test-knows")
    return path


def requests_counted(process: subprocess.Popen[str], port: int) -> Iterator[float]:
    """What each scrape of a run's live metrics says, until the run is over."""
    while process.poll() is None:
        with suppress(OSError):
            text = get_text(f"http://127.0.0.1:{port}/metrics")
            values = re.findall(r"^cliffwatch_client_requests_total{.*} (\S+)$", text, re.MULTILINE)
            yield sum(map(float, values))
        time.sleep(0.3)


def sent_under_way(server: Served, count: int) -> bool:
    return wait_for(lambda: served_ids(server).total() >= count, timeout_s=60)


def test_the_rest_of_a_killed_workers_schedule_is_sent_by_the_others_in_time(server, tmp_path):
    workload = write_workload(tmp_path, "{kind: constant, rate: 40}", requests=480)
    process = begin(server, workload, tmp_path, "--workers", 3, "--on-worker-loss", "redistribute")
    assert sent_under_way(server, 80)
    os.kill(workers_of(process)[1], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert counts.get("ok", 0) + counts.get("lost", 0) == 480 and counts.get("lost", 0) <= 1
    assert set(served_ids(server).values()) == {1}
    assert len(served_ids(server)) >= counts["ok"]
    assert sorted(worker.state for worker in manifest.workers) == ["finished"] * 4 + ["handed over"]
    assert sum("the rest of its schedule went on as worker 3, 4" in text for text in manifest.warnings) == 1
    assert "distributed test" not in err  # what Locust has to say of its users


def test_a_worker_that_stands_still_goes_on_where_time_is_and_tells(server, tmp_path):
    """17 s, beyond its lease and what a handover waits for, the longest lag allowed being 4 s: what is older on waking
    is late, the rest is sent, nothing is lost. A longer pause differs in nothing but the number that is late."""
    workload = write_workload(tmp_path, "{kind: constant, rate: 20}", duration="23s", max_lag="4s")
    process = begin(server, workload, tmp_path, "--workers", 2)
    assert sent_under_way(server, 40)
    paused = workers_of(process)[0]
    os.kill(paused, signal.SIGSTOP)
    time.sleep(17)
    os.kill(paused, signal.SIGCONT)
    process.communicate(timeout=60)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert manifest.accounting.issued == sum(counts.values()) == 460
    assert counts["ok"] + counts["late"] == 460  # all that the schedule has, each id once: nothing cancelled or lost
    assert 120 <= counts["late"] <= 150  # 10 a second for 17 s, less the last 4 s, which may be sent
    assert len(served_ids(server)) == counts["ok"]
    assert set(served_ids(server).values()) == {1}
    assert manifest.state is RunState.COMPLETE
    stood = [text for text in manifest.warnings if "stood still for 1" in text]
    assert len(stood) == 1 and f"pid {paused}" in stood[0]


def test_a_worker_that_was_given_up_learns_it_on_waking_and_sends_nothing(server, tmp_path):
    workload = write_workload(tmp_path, "{kind: constant, rate: 20}", duration="30s", max_lag="20s")
    process = begin(server, workload, tmp_path, "--workers", 2, "--on-worker-loss", "redistribute")
    assert sent_under_way(server, 40)
    paused = workers_of(process)[0]
    os.kill(paused, signal.SIGSTOP)
    time.sleep(20)
    os.kill(paused, signal.SIGCONT)
    process.communicate(timeout=60)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert sum(counts.values()) == 600
    assert counts["ok"] >= 595  # all but what was in flight when it was stopped: the lag allowed covers the handover
    assert set(served_ids(server).values()) == {1}
    assert any("was not heard for 15 s: the rest of its schedule went on" in text for text in manifest.warnings)


def test_a_worker_that_joins_late_is_told_its_part_and_takes_over_a_dead_ones(server, tmp_path):
    port = free_port(0)
    workload = write_workload(tmp_path, "{kind: constant, rate: 20}", requests=500)
    bind = ("--bind", f"127.0.0.1:{port}", "--link-key-file", key_file(tmp_path))
    process = begin(server, workload, tmp_path, "--workers", 1, *bind, "--on-worker-loss", "redistribute")
    assert sent_under_way(server, 20)
    joining = start("--master", f"127.0.0.1:{port}", "--workers", 1, "--link-key-file", key_file(tmp_path))
    assert joining.stderr is not None
    said = iter(joining.stderr.readline, "")
    assert any("stands by to take over the part of a worker that dies" in line for line in said)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    process.communicate(timeout=60)
    joining.communicate(timeout=30)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert counts.get("ok", 0) + counts.get("lost", 0) == 500 and counts["ok"] >= 499
    assert set(served_ids(server).values()) == {1}
    assert [worker.state for worker in manifest.workers] == ["handed over", "finished"]


def test_another_master_takes_the_run_and_its_workers_over(server, tmp_path):
    """The worker goes on for as long as its lease lasts, then holds; the new master is there within that time. It shows
    live metrics, which the first one did not: in the last scrape every request counts, whoever sent it."""
    bind = ("--bind", f"127.0.0.1:{free_port(0)}", "--link-key-file", key_file(tmp_path))
    workload = write_workload(tmp_path, "{kind: constant, rate: 20}", requests=600, max_lag="20s")
    process = begin(server, workload, tmp_path, "--workers", 1, "--expect", 1, *bind)
    lent = start("--master", bind[1], "--workers", 1, *bind[2:])
    assert sent_under_way(server, 60)
    port = free_port(0)
    process.kill()  # and with it its own worker
    process.communicate()
    second = start(
        "--resume", tmp_path / "run", "--workers", 1, *bind, "--no-report", "--on-worker-loss", "redistribute",
        "--metrics", port, "--metrics-linger", "20s",
    )  # fmt: skip
    counted = list(requests_counted(second, port))
    _, err = second.communicate(timeout=90)
    lent.communicate(timeout=30)
    counts, manifest = balanced(tmp_path / "run"), read_manifest(tmp_path / "run")
    assert counts.get("ok", 0) + counts.get("late", 0) + counts.get("cancelled", 0) + counts.get("lost", 0) == 600
    assert counts["ok"] > 590, (counts, err)
    assert set(served_ids(server).values()) == {1}
    assert counted == sorted(counted) and counted[-1] == 600
    assert manifest.workers[0].state != manifest.workers[1].state
    assert {worker.state for worker in manifest.workers} == {"finished", "handed over"}
    assert any("another one went on" in text for text in manifest.warnings)
    assert not (tmp_path / "run" / "progress.json").exists()


def test_a_worker_without_the_runs_folder_ships_its_rows_and_takes_them_with_it_when_it_dies(server, tmp_path):
    """A mount of nothing over the run's folder, seen by one worker only."""
    shared = tmp_path / "shared"
    shared.mkdir()
    hidden = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {shared} && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounts of one's own are not allowed here")
    bind = ("--bind", f"127.0.0.1:{free_port(0)}", "--link-key-file", key_file(tmp_path))
    workload = write_workload(tmp_path, "{kind: constant, rate: 30}", requests=600)
    process = begin(server, workload, shared, "--workers", 1, "--expect", 2, *bind, "--on-worker-loss", "redistribute")
    command = [
        *hidden,
        sys.executable,
        "-m",
        "cliffwatch",
        "run",
        "--master",
        bind[1],
        "--workers",
        "1",
        *map(str, bind[2:]),
    ]
    lent = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert sent_under_way(server, 30)
    os.kill(workers_of(lent[0])[0], signal.SIGKILL)
    process.communicate(timeout=90)
    for lender in lent:
        lender.communicate(timeout=30)
    counts, manifest = balanced(shared / "run"), read_manifest(shared / "run")
    assert sum(counts.values()) == 600 and set(served_ids(server).values()) == {1}
    dead = next(worker for worker in manifest.workers if worker.state == "handed over")
    assert dead.rows == 0 and [w.rows for w in manifest.workers[:3] if w is not dead] == [200, 200]
    # it was not heard for 15 s, which is when its part was handed over: what was due by then is on nobody's record
    assert 140 <= counts["lost"] <= 195 and counts["ok"] + counts["lost"] == 600
