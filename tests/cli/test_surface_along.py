"""`cliffwatch surface cliffs`, `knee` and `drift` on files of measurements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from cliffwatch.cli.surface_along import knee_app
from cliffwatch.cli.surface_cliffs import app as cliffs_app
from cliffwatch.cli.surface_drift import app as drift_app
from cliffwatch.cli.surface_exponent import app as exponent_app
from cliffwatch.errors import ExitCode, InputError


def measured(path: Path, break_at: float, seed: int = 1) -> Path:
    """Lengths of 512 to 64k, +100 % from 8k on; batches 1 to 64 whose latency is flat up to `break_at`, then grows."""
    generator = np.random.default_rng(seed)
    lines = []
    for batch in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64):
        for length in (512 * 2**k for k in range(8)):
            for _ in range(6):
                ttft = 0.02 * (2 if length >= 8192 else 1) * (1 + 0.1 * max(batch - break_at, 0))
                noise = np.exp(generator.normal(0, 0.03))
                lines.append({"input_tokens": length, "batch": batch, "ttft": ttft * noise})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("measured") / "a.jsonl", 16)


def invoke(app: object, *arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])  # type: ignore[arg-type]


def test_the_cliff_of_every_batch_is_told(file: Path) -> None:
    done = invoke(cliffs_app, file)
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert len(lines) == 11
    assert all("from 4096 to 8192" in line and "n 6" in line for line in lines[1:])


def test_json_and_the_gate(file: Path) -> None:
    found = json.loads(invoke(cliffs_app, file, "--json").output)
    (cliff,) = found["curves"]["16"]["cliffs"]
    assert (cliff["after"], cliff["before"]) == (4096, 8192)
    assert cliff["jump"] == pytest.approx(1.0, rel=0.1)
    assert invoke(cliffs_app, file, "--fail-below", "8k").exit_code == ExitCode.SLO_MISSED
    assert invoke(cliffs_app, file, "--fail-below", "4k").exit_code == 0


def test_the_cause_is_told_where_the_engine_shows_one(tmp_path: Path, file: Path) -> None:
    """Requests are sent by length; from 8k on, from Unix second 40 on, some wait."""
    lines = sorted(map(json.loads, file.read_text().splitlines()), key=lambda line: float(line["input_tokens"]))
    timed = [line | {"wall": at / 6, "e2e": line["ttft"]} for at, line in enumerate(lines)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in timed))
    scrapes = "".join(
        f"# scraped {at / 6 + 0.01}\nvllm:num_requests_waiting {4 if at >= 240 else 0}\nvllm:kv_cache_usage_perc 0.5\n"
        for at in range(480)
    )
    (tmp_path / "metrics.prom").write_text(scrapes)
    asked = (tmp_path / "run.jsonl", "--metrics", tmp_path / "metrics.prom")
    lines_of = invoke(cliffs_app, *asked, "--graph-sizes", "1, 2,4").output.splitlines()[1:]
    assert all("; cause: queueing (0 requests waiting on average, then 4 (" in line for line in lines_of)
    found = json.loads(invoke(cliffs_app, *asked, "--max-batched-tokens", "4096", "--json").output)["curves"]
    assert [cause["name"] for cause in found["1"]["cliffs"][0]["causes"]] == ["queueing", "chunked prefill"]
    assert [cause["name"] for cause in found["4"]["cliffs"][0]["causes"]] == ["queueing"]  # several steps before, too
    told = json.loads(invoke(cliffs_app, file, "--json").output)["curves"]["1"]["cliffs"][0]
    assert told["causes"] == []
    assert told["cause_unknown"] == "no engine metrics over this run"
    assert "cause not known: no engine metrics over this run" in invoke(cliffs_app, file).output


def test_the_knee_is_told(file: Path) -> None:
    found = json.loads(invoke(knee_app, file, "--axis", "batch", "--by", "input_tokens", "--json").output)
    (place,) = found["curves"]["1k" if "1k" in found["curves"] else "1024"]["breaks"]
    assert place["low"] <= 16 <= place["high"]
    assert "flat, then growing" in invoke(knee_app, file, "--axis", "batch", "--by", "input_tokens").output


def test_the_exponent_is_told_or_that_there_is_none(file: Path) -> None:
    asked = (exponent_app, file, "--axis", "batch", "--by", "input_tokens")
    found = json.loads(invoke(*asked, "--json").output)["curves"]["1k"]
    assert found["whole"]["low"] < found["whole"]["exponent"] < found["whole"]["high"]
    assert "goes from" in found["not_a_law"]  # flat up to 16, then growing
    assert "no power law: its exponent goes from" in invoke(*asked).output
    (line,) = invoke(exponent_app, file, "--by", "phase").output.splitlines()[1:]
    assert "ttft_s ~ input_tokens^0." in line and "8 points (n 480)" in line
    assert "too little data to say" in invoke(exponent_app, file, "--bins", "linear:30000").output


def test_a_drift_is_told_and_what_two_runs_cannot_tell(tmp_path: Path) -> None:
    measured(tmp_path / "a.jsonl", 16)
    measured(tmp_path / "b.jsonl", 8, seed=2)
    (tmp_path / "drift.yaml").write_text("runs:\n- {run: a.jsonl, rho: 0, g: 1}\n- {run: b.jsonl, rho: 0.5, g: 1}\n")
    done = invoke(drift_app, tmp_path / "drift.yaml", "--axis", "batch", "--json")
    found = json.loads(done.output)
    (moved,) = found["shifts"]
    assert moved["low"] < 0.5 < moved["high"] < 1
    assert found["drift"]["a"] is None
    assert "cannot be told from these 2 runs" in invoke(drift_app, tmp_path / "drift.yaml", "--axis", "batch").output


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--axis", "cache"), "--axis"),
        (("--statistic", "p99"), "--statistic"),
        (("--metric", "speed"), "metric"),
        (("--fail-below", "soon"), "--fail-below"),
        (("--max-batched-tokens", "many"), "--max-batched-tokens"),
        (("--max-num-seqs", "0"), "--max-num-seqs"),
        (("--graph-sizes", "1,two"), "--graph-sizes"),
    ],
)
def test_wrong_options_are_named(file: Path, arguments: tuple[str, ...], field: str) -> None:
    refused = invoke(cliffs_app, file, *arguments).exception
    assert isinstance(refused, InputError)
    assert refused.field == field


def test_a_run_without_a_knee_is_named(tmp_path: Path) -> None:
    measured(tmp_path / "a.jsonl", 1000)
    (tmp_path / "drift.yaml").write_text("runs:\n- {run: a.jsonl, rho: 0, g: 1}\n- {run: a.jsonl, rho: 0, g: 0}\n")
    refused = invoke(drift_app, tmp_path / "drift.yaml", "--axis", "batch").exception
    assert isinstance(refused, InputError)
    assert "no knee" in str(refused)
