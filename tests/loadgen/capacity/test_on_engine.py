"""`cliffwatch capacity` on the stand-in: found, interrupted, resumed, and never the load generator's limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliffwatch.capacity.result import read
from cliffwatch.capacity.search import State
from cliffwatch.capacity.sequential import Outcome
from cliffwatch.cli.processes import wait_for
from cliffwatch.records.manifest import RunState, read_manifest
from tests.servers.engines import standin

pytestmark = pytest.mark.integration

WORKLOAD = """\
name: short
duration: 10s
arrivals: {{kind: poisson, rate: {rate}}}
input_tokens: {{kind: uniform, min: 200, max: 1500}}
output_tokens: {{kind: uniform, min: 4, max: 12}}
batch: {{sizes: [1]}}
max_lag: {max_lag}
"""
SLO = "name: quick\nobjectives:\n  - {sli: ttft, threshold: 60ms, target: 90%}\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standin(tmp_path_factory.mktemp("engine"), "--speed", "4") as server:
        yield server.url


def start(folder: Path, engine: str, *options: object, rate: float = 60, max_lag: str = "10s") -> subprocess.Popen[str]:
    (folder / "workload.yaml").write_text(WORKLOAD.format(rate=rate, max_lag=max_lag))
    (folder / "slo.yaml").write_text(SLO)
    command = [sys.executable, "-m", "cliffwatch", "capacity", folder / "workload.yaml", "--target", engine]
    command += ["--slo", folder / "slo.yaml", "--out", folder / "out", *options]
    return subprocess.Popen(
        [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def test_a_search_that_is_interrupted_goes_on_where_it_was(engine, tmp_path):
    options = ("--probe-duration", "4s", "--probes", 5, "--precision", "50%", "--replicas", 2, "--json")
    process = start(tmp_path, engine, *options)
    assert wait_for(lambda: (tmp_path / "out" / "probe-02" / "shards").exists(), timeout_s=60)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 130
    kept = json.loads(out)
    assert kept["interrupted"] == "interrupted (SIGINT)"
    assert [one["rate"] for one in kept["probes"]] == [60.0]
    assert read_manifest(tmp_path / "out" / "probe-02").state is RunState.PARTIAL  # closed, and no evidence

    code, out, err = ended(start(tmp_path, engine, *options, "--resume"))
    assert code == 0, err
    found = read(tmp_path / "out")
    assert json.loads(out) == found.model_dump(mode="json")
    assert found.probes[0].folder == "probe-01"
    assert found.probes[1].folder == "probe-02-again-1"
    assert {Outcome.FAILS, Outcome.INVALID} & {one.outcome for one in found.probes}
    assert found.interrupted is None
    assert found.answer.state in {State.FOUND, State.WIDE}
    assert found.fewer is not None
    assert not found.fewer.measured
    for one in found.probes:  # each is a run of its own, which every other command reads
        assert read_manifest(tmp_path / "out" / one.folder).accounting.balanced
    assert "already holds a capacity search" in ended(start(tmp_path, engine, *options))[2]
    other = ended(start(tmp_path, engine, "--probe-duration", "5s", "--resume"))
    assert other[0] == 2
    assert "is a search for something else" in other[2]


def test_a_load_generator_that_cannot_keep_up_is_not_taken_for_the_server(engine, tmp_path):
    # every request is over its allowed lag by the time it could leave
    code, out, err = ended(start(tmp_path, engine, "--probe-duration", "2s", "--min", 60, "--probes", 3, max_lag="1us"))
    assert code == 3, err
    found = read(tmp_path / "out")
    assert {one.outcome for one in found.probes} == {Outcome.INVALID}
    assert (found.answer.state, found.answer.low, found.answer.high) == (State.NOTHING, None, None)
    assert "late or lost" in found.probes[0].notes[0]
    assert "no probe counts" in out
