"""`cliffwatch compare`: forms, exit codes, and what it says to wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from cliffwatch.records.files import final_path
from cliffwatch.records.schema import Outcome, Phase
from tests.cli.command import Command
from tests.slo.rows import refused, run_of, served


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def make(folder: Path, *, n: int = 1000, ttft: float = 0.1, failed: int = 0, **options: Any) -> Path:
    rows = [served(number, ttft=ttft + number % 50 / 1e5) for number in range(n)]
    rows += [refused(n + number, Outcome.HTTP_5XX) for number in range(failed)]
    run_of(folder, rows, **options)
    return folder


def test_exit_codes_of_a_gate(tmp_path: Path, command: Command) -> None:
    base, same = make(tmp_path / "base"), make(tmp_path / "same")
    quiet = command("compare", base, same)
    assert (quiet.code, quiet.err) == (0, "")
    assert "no change shown" in quiet.out
    slow = make(tmp_path / "slow", ttft=0.2)
    worse = command("compare", base, slow)
    assert worse.code == 1
    assert "✕ TTFT P50" in worse.out
    assert "regressed" in worse.out
    assert command("compare", slow, base).code == 0
    assert command("compare", base, slow, "--threshold", "100%", "--metric", "ttft").code == 0
    assert command("compare", base, slow, "--metric", "itl").code == 0
    few = make(tmp_path / "few", n=30)
    assert command("compare", base, few).code == 0
    assert command("compare", base, few, "--strict").code == 1


def test_an_invalid_run_says_nothing(tmp_path: Path, command: Command) -> None:
    run_of(tmp_path / "invalid", [served(n, phase=Phase.WARMUP) for n in range(9)])
    base = make(tmp_path / "base")
    ended = command("compare", base, tmp_path / "invalid", "--junit", tmp_path / "j.xml")
    assert ended.code == 3
    assert "must not be trusted: new INVALID" in ended.out
    assert Xml.parse(tmp_path / "j.xml").getroot().get("errors") == "1"  # noqa: S314  our own file
    assert command("compare", tmp_path / "invalid", base).code == 3


def test_runs_that_are_not_alike_are_refused(tmp_path: Path, command: Command) -> None:
    base, other = make(tmp_path / "base"), make(tmp_path / "other", model="other-8b")
    ended = command("compare", base, other)
    assert ended.code == 2
    assert "'synthetic-8b' against 'other-8b'" in ended.err
    allowed = command("compare", base, other, "--allow", "model")
    assert allowed.code == 0
    assert "the model differs" in allowed.out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--threshold", "fast"], "--threshold"), (["--threshold", "-1%"], "--threshold"),
        (["--alpha", "0"], "--alpha"), (["--alpha", "0.5"], "--alpha"), (["--points", "x"], "--points"),
        (["--metric", "latency"], "itl_p99"),
        (["--allow", "anything"], "workload, model"), (["--slo", "nothing.yaml"], "nothing.yaml"),
        (["--junit", "/nowhere/at/all.xml"], "cannot be written"), (["--markdown", "/"], "cannot be written"),
    ],
)  # fmt: skip
def test_wrong_options_are_named(tmp_path: Path, command: Command, options: list[str], text: str) -> None:
    ended = command("compare", make(tmp_path / "base", n=20), make(tmp_path / "new", n=20), *options)
    assert ended.code == 2
    assert text in ended.err
    assert "Traceback" not in ended.err


def test_wrong_folders_are_named(tmp_path: Path, command: Command) -> None:
    base = make(tmp_path / "base", n=20)
    assert "holds no run" in command("compare", base, tmp_path).err
    assert "both runs" in command("compare", base, base).err
    shard = final_path(make(tmp_path / "torn", n=20), 0)
    shard.write_bytes(shard.read_bytes()[:-40])
    ended = command("compare", base, tmp_path / "torn")
    assert ended.code == 2
    assert shard.name in ended.err


def test_json_is_whole_and_has_no_nan(tmp_path: Path, command: Command) -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    ended = command("compare", make(tmp_path / "base", n=60), make(tmp_path / "new", ttft=0.3), "--json")
    compared = json.loads(ended.out, parse_constant=refuse)
    first = compared["figures"][0]
    assert (first["metric"], first["change"], first["base"]["n"]) == ("ttft_p50", "regressed", 60)
    assert first["difference"]["low"] > 0
    assert first["relative"]["value"] == pytest.approx(2, rel=0.01)
    assert compared["figures"][2]["base"] | {"n": None} == {
        "value": pytest.approx(0.1005, abs=1e-3), "low": pytest.approx(0.1005, abs=1e-3), "high": None, "n": None,
    }  # fmt: skip


def test_junit_has_the_usual_shape(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "junit.xml"
    options = ("--metric", "ttft", "--metric", "error_rate", "--junit", path)
    command("compare", make(tmp_path / "base", n=500), make(tmp_path / "new", n=500, ttft=0.2), *options)
    root = Xml.fromstring(path.read_bytes())  # noqa: S314  our own file
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    cases = suite.findall("testcase")
    assert len(cases) == len(suite) == 6
    assert all(case.get("name") and case.get("classname") and case.get("time") for case in cases)
    assert [child.tag for case in cases for child in case if child.tag != "system-out"] == [
        "failure",
        "failure",
        "skipped",
    ]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6", "failures": "2", "errors": "0", "skipped": "1",
    }  # fmt: skip
    assert (root.get("tests"), root.get("failures")) == ("6", "2")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "TTFT P50 regressed: 100 ms to 200 ms (+99.8 %)" in str(failure.get("message"))


def test_markdown_is_one_table_that_a_run_cannot_break(tmp_path: Path, command: Command) -> None:
    evil = "m|x`<script>\n[a](b)\x1b[31m"
    base, new = make(tmp_path / "base", model=evil), make(tmp_path / "new", model=evil, ttft=0.2)
    path = tmp_path / "out.md"
    ended = command("compare", base, new, "--markdown", path, "--junit", tmp_path / "j.xml")
    assert "\x1b" not in ended.out
    lines = path.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert [line.replace("\\|", "").count("|") for line in table] == [7] * len(table)
    assert len(table) == 2 + 12  # 9 latencies, error rate, throughput, output tokens
    assert table[1] == "|---|---:|---:|---:|---:|---|"
    assert lines.index(table[-1]) - lines.index(table[0]) == len(table) - 1
    text = "\n".join(lines)
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "✕ regressed" in text
    Xml.parse(tmp_path / "j.xml")  # noqa: S314  our own file
