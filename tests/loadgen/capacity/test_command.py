"""`cliffwatch capacity` given what it cannot use: one clear line each, before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.servers.processes import free_port

RATES = "arrivals: {kind: poisson, rate: 20}\nduration: 10s\n"
USERS = "arrivals: {kind: concurrency, users: 4}\nduration: 10s\n"
RAMP = "arrivals: {kind: ramp, end_rate: 5, over: 5s}\nduration: 10s\n"
SLO = "name: quick\nobjectives:\n  - {sli: ttft, threshold: 60ms, target: 95%}\n"


@pytest.fixture
def cli(capsys, monkeypatch):
    return Command(capsys, monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "rates": RATES,
        "users": USERS,
        "ramp": RAMP,
        "slo": SLO,
        "empty": "name: x\nobjectives: []",
    }.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("workload", "options", "said"),
    [
        ("rates", ("--min", 50, "--max", 10), "--min: is above --max"),
        ("rates", ("--min", "nan"), "--min: is not a number"),
        ("rates", ("--min", 0), "--min: is out of range"),
        ("rates", ("--max", "inf"), "--max: is out of range"),
        ("users", ("--max", 3.5), "allowed: a whole number of users"),
        ("ramp", (), "arrivals.kind: has no rate that could be searched"),
        ("rates", ("--precision", "0%"), "--precision: is out of range"),
        ("rates", ("--precision", "narrow"), "--precision: "),
        ("rates", ("--probe-duration", "0s"), "--probe-duration: is out of range"),
        ("rates", ("--probe-duration", "soon"), "--probe-duration: "),
        ("rates", ("--replicas", 1), "--replicas: leaves none with one fewer"),
        ("rates", ("--target-fewer", "http://127.0.0.1:1"), "--target-fewer: needs to know how many there are"),
        ("rates", ("--", "--rate", 3), "--rate: is set by each probe itself"),
        ("rates", ("--", "--duration=1m"), "--duration: is set by each probe itself"),
        ("rates", ("--resume",), "holds no capacity search"),
        ("nothing", (), "no such file"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli, files, workload, options, said):
    ended = cli(
        "capacity", files / f"{workload}.yaml", "--target", "http://127.0.0.1:1", "--slo", files / "slo.yaml",
        "--out", files / "out", *options,
    )  # fmt: skip
    assert ended.code == 2
    assert said in ended.err
    assert not (files / "out").exists()


def test_an_slo_file_without_objectives_is_refused(cli, files):
    ended = cli(
        "capacity", files / "rates.yaml", "--target", "http://127.0.0.1:1", "--slo", files / "empty.yaml",
        "--out", files / "out",
    )  # fmt: skip
    assert ended.code == 2
    assert "objectives" in ended.err


def test_a_folder_that_is_taken_is_left_alone(cli, files):
    ended = cli(
        "capacity", files / "rates.yaml", "--target", "http://127.0.0.1:1", "--slo", files / "slo.yaml", "--out", files
    )
    assert ended.code == 2
    assert "is taken" in ended.err


def test_a_target_that_is_not_there_is_unreachable(cli, files):
    ended = cli(
        "capacity", files / "rates.yaml", "--target", f"http://127.0.0.1:{free_port()}", "--slo", files / "slo.yaml",
        "--out", files / "out",
    )  # fmt: skip
    assert ended.code == 4
    assert "connection refused" in ended.err
