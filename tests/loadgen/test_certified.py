"""A run says itself when its worker was held up, and why; the same run left alone is no worse."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import Verdict, VerdictState, read_manifest
from tests.loadgen.test_run import rows_so_far, start, workers_of, write_workload
from tests.servers.engines import standin

pytestmark = pytest.mark.integration
STATES = list(VerdictState)


def certified(engine: str, folder: Path, *, stopped_s: float) -> Verdict:
    folder.mkdir()
    workload = write_workload(folder, requests=240, rate=40)
    with start(workload, "--target", engine, "--out", folder / "run", "--no-report") as process:
        assert wait_for(lambda: rows_so_far(folder / "run") > 40, timeout_s=60)
        if stopped_s:
            (worker,) = workers_of(process)
            os.kill(worker, signal.SIGSTOP)
            time.sleep(stopped_s)
            os.kill(worker, signal.SIGCONT)
        process.communicate(timeout=100)
    verdict = read_manifest(folder / "run").verdict
    assert verdict is not None
    return verdict


def test_a_worker_that_was_paused_makes_the_run_say_so(tmp_path: Path) -> None:
    with standin(tmp_path, "--speed", "20") as engine:
        quiet = certified(engine.url, tmp_path / "quiet", stopped_s=0)
        paused = certified(engine.url, tmp_path / "paused", stopped_s=2)
    reasons = {reason.check: reason for reason in paused.reasons}
    assert paused.state is not VerdictState.VALID
    assert STATES.index(quiet.state) <= STATES.index(paused.state)
    assert reasons["standstill"].value == pytest.approx(2.0, abs=0.5)
    assert "loop lag" in reasons
    assert "send lag" in reasons
