"""Workers whose clocks are not the master's: the run is one schedule all the same, as the server saw it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time

import pytest

from cliffwatch.records.manifest import read_manifest
from cliffwatch.records.reader import RunReader
from loadgen.link_key import KEY_VARIABLE, new_key
from tests.loadgen.scripted import END, STREAM_HEAD, answer_probe, event, serving
from tests.loadgen.test_run import start, write_workload
from tests.servers.processes import end, free_port

pytestmark = pytest.mark.integration

DAY_S = 86_400
ANOTHER_TIME = ["unshare", "--time", "--monotonic", str(DAY_S), "--boottime", str(DAY_S)]


@pytest.fixture
def another_time() -> list[str]:
    """A prefix for commands whose monotonic clock is a day ahead of ours."""
    try:
        subprocess.run([*ANOTHER_TIME, "true"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"time namespaces need root and Linux 5.6: {error}")
    return ANOTHER_TIME


def test_a_worker_whose_clock_is_a_day_ahead_sends_at_the_same_instants(tmp_path, another_time):
    arrivals: dict[int, float] = {}

    def behave(sock: socket.socket, request: bytes) -> None:
        arrived_s = time.time()
        if not answer_probe(sock, request):
            if (sent := re.search(rb"X-Request-Id: \S*-(\d+)\r\n", request)) is not None:
                arrivals[int(sent[1])] = arrived_s
            sock.sendall(STREAM_HEAD + event() + event(finish="length") + END)

    key, bind = {KEY_VARIABLE: new_key().text}, f"127.0.0.1:{free_port()}"
    with serving(behave) as served:
        master = start(
            write_workload(tmp_path, requests=120, rate=30), "--target", f"http://127.0.0.1:{served.port}",
            "--out", tmp_path / "run", "--workers", 1, "--expect", 1, "--bind", bind, "--no-report", **key,
        )  # fmt: skip
        command = [*another_time, sys.executable, "-m", "cliffwatch", "run", "--master", bind]
        lent = subprocess.Popen(command, env=os.environ | key, stdin=subprocess.DEVNULL)
        try:
            _, err = master.communicate(timeout=100)
        finally:
            end(lent)
    manifest = read_manifest(tmp_path / "run")
    with RunReader(tmp_path / "run").connect() as connection:
        planned = dict(connection.execute("SELECT request_id, intended_ns / 1e9 FROM requests").fetchall())
        workers = connection.execute("SELECT count(DISTINCT worker) FROM requests").fetchone()
    assert (len(planned), workers) == (120, (2,)), err
    late_s = sorted(arrivals[number] - manifest.t0_unix_ns / 1e9 - at_s for number, at_s in planned.items())
    assert late_s[0] > -0.01
    assert late_s[len(late_s) // 2] < 0.05
    clocks = [worker.clock for worker in manifest.workers]
    for clock in clocks:
        assert clock is not None and clock.bound_s < 0.05
        assert abs(clock.offset_s) <= clock.bound_s + 0.001
        assert clock.proven_drift_s is not None and clock.proven_drift_s < 0.005
