"""`cliffwatch workload`, run as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cliffwatch.cli.workload import app
from cliffwatch.errors import InputError
from cliffwatch.workload.spec import load_workload, preset_names


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_preview_shows_tables_and_a_plot() -> None:
    text = run("preview", "longtail")
    for words in ("poisson, 4/s asked", "CV 0.986 (n = 260)", "nothing was sent", "16k to 32k", "batch 8", "█"):
        assert words in text
    assert "worker" not in text


def test_preview_of_shards_shows_each() -> None:
    assert "worker" in run("preview", "longtail", "--shards", "2")


@pytest.mark.parametrize("name", preset_names())
def test_preview_as_json_has_no_nan(name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    figures = json.loads(run("preview", name, "--json", "--shards", "2"), parse_constant=refuse)
    assert figures["name"] == name
    assert len(figures["shards"]) == 2


def test_presets_lists_each_with_its_purpose() -> None:
    lines = run("presets").splitlines()
    assert [line.partition(":")[0] for line in lines] == preset_names()
    assert all(line.partition(": ")[2] for line in lines)


def test_init_writes_a_file_that_is_the_preset(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert f"cliffwatch workload preview {path}" in run("init", str(path), "--preset", "chat")
    assert load_workload(str(path)) == load_workload("chat")
    with pytest.raises(InputError, match=r"mine\.yaml: exists already"):
        run("init", str(path))
    assert load_workload(str(path)).name == "chat"


def test_init_names_what_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nope: is no preset"):
        run("init", str(tmp_path / "x.yaml"), "--preset", "nope")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        run("init", str(tmp_path / "none" / "x.yaml"))
    assert list(tmp_path.iterdir()) == []


def test_check_tells_the_load_in_a_line(tmp_path: Path) -> None:
    assert run("check", "longtail") == "longtail: well formed; poisson arrivals, 4/s, for 60 s\n"
    assert run("check", "closed") == "closed: well formed; 8 users in a closed loop, for 60 s\n"
    path = tmp_path / "w.yaml"
    path.write_text("requests: 20\nduration: 5s\narrivals: {kind: constant, rate: 2}\n")
    assert run("check", str(path)) == "workload: well formed; constant arrivals, 2/s, for 5 s or 20 requests\n"


def test_check_tells_the_mean_of_a_changing_rate(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("duration: 40s\narrivals: {kind: bursts, on: 10s, off: 10s, on_rate: 3}\n")
    assert run("check", str(path)) == "workload: well formed; bursts arrivals, 1.5/s on average, for 40 s\n"


@pytest.mark.parametrize("command", ["check", "preview"])
def test_a_fault_names_the_file_and_the_field(tmp_path: Path, command: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("duration: 60s\narrivals: {kind: poisson, rate: -4}\n")
    with pytest.raises(InputError, match=r"w\.yaml: arrivals\.rate: cannot be used; got -4; allowed: greater than"):
        run(command, str(path))


def test_preview_names_the_file_of_a_load_without_requests(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("duration: 10ms\narrivals: {kind: poisson, rate: 0.001}\n")
    with pytest.raises(InputError, match=r"w\.yaml: duration: ends before its first request"):
        run("preview", str(path))


def test_check_reads_a_trace_to_its_end_and_says_what_was_set_right(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("arrivals: {kind: trace, file: t.csv}\n")
    rows = [f"2023-11-16 18:17:{second:02d}.5,100,{second}" for second in (9, 1, 0, 30)]
    (tmp_path / "t.csv").write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]))
    assert run("check", str(tmp_path / "w.yaml")).splitlines() == [
        "workload: well formed; trace arrivals",
        f"{tmp_path / 't.csv'}: 4 requests to send",
        "Trace: an answer of 0 tokens is asked for as 1 token, the least a server gives (1, the first in line 4).",
        "Trace: a row out of order is put at its time (2, the first in line 3).",
    ]
    assert "Trace: a row out of order" in run("preview", str(tmp_path / "w.yaml"))
    figures = json.loads(run("preview", str(tmp_path / "w.yaml"), "--json"))
    assert [repair["count"] for repair in figures["repairs"]] == [1, 2]
    with (tmp_path / "t.csv").open("a") as stream:
        stream.writelines(
            f"\n2023-11-16 18:18:{second:02d},100,{length}" for second in range(60) for length in range(90)
        )
        stream.write("\n2023-11-16 18:19:00,-5,1")
    with pytest.raises(InputError, match=r"t\.csv: line 5406: input length is out of range"):
        run("check", str(tmp_path / "w.yaml"))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    rows = [f"{index / 4},{100 + index % 50},{9 + index % 5}" for index in range(400)]
    path.write_text("\n".join(["time_s,input_tokens,output_tokens", *rows]))
    return path


def test_fit_writes_a_file_that_previews(tmp_path: Path, trace: Path) -> None:
    out = tmp_path / "fitted.yaml"
    said = run("fit", str(trace), "--out", str(out))
    assert "fidelity 0.9" in said
    assert f"cliffwatch workload preview {out}" in said
    assert "constant arrivals, 4/s" in run("check", str(out))
    assert "mine" in run("preview", str(out))
    with pytest.raises(InputError, match=r"fitted\.yaml: exists already"):
        run("fit", str(trace), "--out", str(out))


def test_fit_prints_the_file_or_the_figures(tmp_path: Path, trace: Path) -> None:
    assert run("fit", str(trace)).startswith("name: mine\n")
    figures = json.loads(run("fit", str(trace), "--json"))
    assert figures["fidelity"]["n"] == 400
    assert figures["complete"] is True
    (tmp_path / "w.yaml").write_text(f"arrivals: {{kind: trace, file: {trace.name}, end: 50s}}")
    assert json.loads(run("fit", str(tmp_path / "w.yaml"), "--json"))["fidelity"]["n"] == 200


def test_fit_names_what_it_cannot_use(tmp_path: Path, trace: Path) -> None:
    with pytest.raises(InputError, match="none: cannot be read"):
        run("fit", str(tmp_path / "none"))
    with pytest.raises(InputError, match="options: format: cannot be used; got 'odd'"):
        run("fit", str(trace), "--format", "odd")
    (tmp_path / "w.yaml").write_text("duration: 5s\narrivals: {kind: constant, rate: 2}\n")
    with pytest.raises(InputError, match=r"w\.yaml: arrivals\.kind: is no trace to fit; got 'constant'"):
        run("fit", str(tmp_path / "w.yaml"))
