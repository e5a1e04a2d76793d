"""`cliffwatch report`: forms, exit codes, and what it says to wrong input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.records.files import final_path
from cliffwatch.records.manifest import FILE_NAME, RunState
from cliffwatch.records.schema import Outcome, Phase
from tests.cli.command import Command
from tests.slo.rows import refused, run_of, served

SLO = "name: strict\nobjectives:\n  - {sli: ttft, threshold: 1s, target: 95%}\n"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def make(folder: Path, *, n: int = 200, ttft: float = 0.1, **options: Any) -> Path:
    run_of(folder, [served(number, ttft=ttft) for number in range(n)], **options)
    return folder


def test_met_missed_and_too_few_data(tmp_path: Path, command: Command) -> None:
    met = command("report", make(tmp_path / "met", slo=SLO))
    assert (met.code, met.err) == (0, "")
    assert "✓ met" in met.out
    assert command("report", make(tmp_path / "missed", ttft=2, slo=SLO)).code == 1
    few = make(tmp_path / "few", n=20, slo=SLO)
    unsure = command("report", few)
    assert unsure.code == 0
    assert "too few data" in unsure.out
    assert command("report", few, "--strict").code == 1


def test_a_run_without_an_slo_is_shown_and_not_judged(tmp_path: Path, command: Command) -> None:
    ended = command("report", make(tmp_path / "run"))
    assert ended.code == 0
    assert "No SLO file was given" in ended.out
    assert all(word in ended.out for word in ("TTFT", "ok", "verdict", "cost"))


def test_requests_are_told_apart_by_what_they_were(tmp_path: Path, command: Command) -> None:
    tenants = [("free", 0.1)] * 150 + [("paid", 0.5)] * 40 + [(None, 0.2)] * 10
    lines = [served(i, ttft=ttft, tenant=name, turn=i % 12) for i, (name, ttft) in enumerate(tenants)]
    run_of(tmp_path / "run", [*lines, refused(200, Outcome.HTTP_5XX, tenant="paid")])
    ended = command("report", tmp_path / "run", "--by", "tenant", "--json")
    groups = {one["value"]: one for one in json.loads(ended.out)["groups"]}
    assert [(value, one["n"], one["ok"]) for value, one in groups.items()] == [
        ("free", 150, 150), ("paid", 41, 40), (None, 10, 10)
    ]  # fmt: skip
    assert groups["free"]["latencies"]["TTFT"]["p50"] == {"value": pytest.approx(0.1), "n": 150, "few": False}
    assert groups["paid"]["latencies"]["TTFT"]["p95"]["few"]
    assert groups[None]["latencies"]["TTFT"]["p95"]["value"] is None
    table = command("report", tmp_path / "run", "--by", "tenant").out
    assert "TTFT P95" in table and "97.6 %" in table
    turns = json.loads(command("report", tmp_path / "run", "--by", "turn", "--json").out)["groups"]
    assert [one["value"] for one in turns] == [*map(str, range(12)), None]  # by number, not as text
    assert command("report", tmp_path / "run", "--by", "colour").code == 2


@pytest.mark.parametrize("name", ["manifest.json", "slo.yaml", "shards/worker-000.parquet", "shards/new.html"])
def test_a_report_never_replaces_what_it_is_made_from(tmp_path: Path, command: Command, name: str) -> None:
    run = make(tmp_path / "run", slo=SLO)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    ended = command("report", run, "--html", run / name)
    assert ended.code == 2
    assert "--html" in ended.err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_shard_that_is_gone_is_not_judged_as_if_it_had_never_been(tmp_path: Path, command: Command) -> None:
    run = make(tmp_path / "run", slo=SLO)
    final_path(run, 0).unlink()
    ended = command("report", run)
    assert ended.code == 2
    assert "worker-000.parquet: is missing: it held 200 rows" in ended.err


def test_a_run_in_which_everything_failed_does_not_pass_a_gate(tmp_path: Path, command: Command) -> None:
    run_of(tmp_path / "run", [refused(number, Outcome.HTTP_5XX) for number in range(20)])
    ended = command("report", tmp_path / "run")
    assert ended.code == 1
    assert "No SLO file was given" in ended.out


def test_an_invalid_run_has_its_own_exit_code(tmp_path: Path, command: Command) -> None:
    rows = [served(number, phase=Phase.WARMUP) for number in range(9)]  # nothing measured
    run_of(tmp_path / "run", rows, slo=SLO)
    ended = command("report", tmp_path / "run")
    assert ended.code == 3
    assert "INVALID" in ended.out


def test_the_given_slo_comes_before_the_runs_own(tmp_path: Path, command: Command) -> None:
    run = make(tmp_path / "run", ttft=2, slo=SLO)
    easy = tmp_path / "easy.yaml"
    easy.write_text(SLO.replace("1s", "5s"))
    assert command("report", run, "--slo", easy).code == 0
    assert command("report", run, "--slo", "offline").code == 0


def test_another_phase_is_judged_when_asked(tmp_path: Path, command: Command) -> None:
    rows = [served(number) for number in range(200)] + [
        served(number, phase=Phase.COLD, ttft=9) for number in range(200, 205)
    ]
    run_of(tmp_path / "run", rows, slo=SLO)
    plain = command("report", tmp_path / "run")
    assert plain.code == 0
    assert "apart: cold, 5 requests, 5 ok" in plain.out
    assert command("report", tmp_path / "run", "--phase", "cold").code == 1
    assert command("report", tmp_path / "run", "--phase", "all", "--json").code == 0
    assert command("report", tmp_path / "run", "--phase", "hot").code == 2


def test_json_is_whole_and_has_no_nan(tmp_path: Path, command: Command) -> None:
    rows = [refused(number, Outcome.CONNECT, sent=False) for number in range(20)]
    run_of(tmp_path / "run", rows, slo=SLO, state=RunState.PARTIAL)
    ended = command("report", tmp_path / "run", "--json")

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    report = json.loads(ended.out, parse_constant=refuse)
    assert ended.code == 1
    assert report["judgement"]["status"] == "missed"
    assert "stopped by SIGTERM" in report["partial"]
    assert report["figures"][0] | {"percentiles": None} == {
        "label": "TTFT", "figure": "ttft_user_s", "n": 0, "mean": None, "min": None, "max": None, "percentiles": None,
        "bias": None,
    }  # fmt: skip
    assert report["work"]["held_s"] == 19
    assert not any(isinstance(value, float) and math.isnan(value) for value in report["throughput"].values())


def test_partial_runs_say_so_on_top(tmp_path: Path, command: Command) -> None:
    ended = command("report", make(tmp_path / "run", state=RunState.PARTIAL))
    assert "The run is partial (stopped by SIGTERM)" in ended.out.split("Latency")[0]


def test_html_is_written_beside_the_table(tmp_path: Path, command: Command) -> None:
    page = tmp_path / "report.html"
    ended = command("report", make(tmp_path / "run", slo=SLO), "--html", page)
    assert ended.code == 0
    assert "✓ met" in ended.out
    assert page.read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")


@pytest.mark.parametrize(("name", "text"), [("text.html/x", "cannot be written"), ("", "cannot be written")])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, command: Command, name: str, text: str) -> None:
    (tmp_path / "text.html").write_text("kept")
    ended = command("report", make(tmp_path / "run"), "--html", tmp_path / name)
    assert ended.code == 2
    assert text in ended.err
    assert str(tmp_path / name) in ended.err
    assert "Traceback" not in ended.err


def test_wrong_folders_and_files_are_refused_by_name(tmp_path: Path, command: Command) -> None:
    assert "holds no run" in command("report", tmp_path).err
    assert command("report", tmp_path / "nowhere").code == 2
    run = make(tmp_path / "run", slo=SLO)
    assert command("report", run, "--slo", "nothing.yaml").code == 2
    (run / "slo.yaml").write_text("name: broken\nobjectives: 3\n")
    ended = command("report", run)
    assert ended.code == 2
    assert "slo.yaml: objectives" in ended.err


def test_damaged_runs_are_refused_by_file(tmp_path: Path, command: Command) -> None:
    run = make(tmp_path / "run")
    shard = final_path(run, 0)
    shard.write_bytes(shard.read_bytes()[:-40])
    ended = command("report", run)
    assert ended.code == 2
    assert shard.name in ended.err
    inside = make(tmp_path / "inside")
    shard = final_path(inside, 0)
    data = shard.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    shard.write_bytes(data[:100] + bytes(footer - 100) + data[footer:])
    ended = command("report", inside)
    assert ended.code == 2
    assert "cannot be read" in ended.err
    other = make(tmp_path / "other")
    (other / FILE_NAME).write_text('{"format": 1')
    assert FILE_NAME in command("report", other).err


def test_text_of_a_server_cannot_steer_the_terminal(tmp_path: Path, command: Command) -> None:
    rows = [refused(number, Outcome.HTTP_5XX, error="\x1b[2J\x1b]0;owned\x07[red]gone[/red]") for number in range(3)]
    run_of(tmp_path / "run", rows, model="m\x1b[31m")
    out = command("report", tmp_path / "run").out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[red]gone[/red]" in out


def test_pictures_of_hardware_and_of_another_run_are_for_the_html(tmp_path: Path, command: Command) -> None:
    run, html, on = make(tmp_path / "run"), tmp_path / "r.html", ("--hardware", "H200", "--model", "llama-3-8b")
    assert command("report", run, "--html", html, *on, "--against", make(tmp_path / "other")).code == 0
    assert "Memory bandwidth used, decode" in html.read_text()
    for arguments, said in (
        (on, "--html: is missing"),
        (("--against", tmp_path / "other"), "--html: is missing"),
        (("--html", html, "--hardware", "H200"), "--model: is needed"),
        (("--html", html, "--hardware", "abacus", "--model", "llama-3-8b"), "--hardware: nothing is known of it"),
        (("--html", html, "--against", tmp_path / "none"), "none: holds no run"),
        (("--html", html, *on, "--cached"), "cache: was not measured"),
    ):
        refused_one = command("report", run, *arguments)
        assert refused_one.code == 2
        assert said in refused_one.err
