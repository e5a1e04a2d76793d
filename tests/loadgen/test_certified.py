"""A run says itself when its worker was held up, and why; the same run left alone is no worse."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import Verdict, VerdictState, read_manifest
from tests.loadgen.test_run import balanced, rows_so_far, run, start, workers_of, write_workload
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


def test_a_calibrated_run_publishes_its_own_bias_and_how_far_it_was_measured(tmp_path: Path) -> None:
    """140 requests a second, each of 2 s for all that is known before: 280 streams, more than a calibration opens."""
    with standin(tmp_path, "--speed", "20") as engine:
        workload = write_workload(tmp_path, requests=60, rate=140)
        code, out, err = run(workload, "--target", engine.url, "--out", tmp_path / "run", "--calibrate", "--json")
    assert code in {0, 3}, err
    assert balanced(tmp_path / "run") == {"ok": 60}
    manifest = read_manifest(tmp_path / "run")
    assert manifest.calibration is not None
    assert [(one.name, one.streams, one.asked_streams) for one in manifest.calibration.levels] == [
        ("idle", 10, 10),
        ("load", 250, 280),
    ]
    assert sum("measured at 250 streams" in text for text in manifest.warnings) == 1
    assert "measured at 250 streams" in err
    own = manifest.calibration.own
    assert own.ttft.n > 250 and own.itl.n > 9 * 250 and 0 < own.core_s_per_chunk < 0.01
    shown = {one["bias"]["p99_s"] for one in json.loads(out)["figures"] if one["bias"]}
    assert shown == {own.ttft.p99_s, own.itl.p99_s}
