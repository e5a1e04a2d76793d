"""`cliffwatch import` as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from cliffwatch.cli.imports import app
from cliffwatch.errors import InputError


def test_a_file_becomes_a_run(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"input_tokens": 5, "ttft": 1}\n{"input_tokens": 9, "ttft": 2}\n')
    arguments = [str(tmp_path / "mine.jsonl"), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    found = json.loads(done.output)
    assert (done.exit_code, found["requests"], found["columns"]["ttft"]) == (0, 2, "ttft")
    assert "e2e" in found["missing"]
    done = CliRunner().invoke(app, [*arguments[:-1], str(tmp_path / "other")])
    assert "2 requests from 2 lines" in done.output
    assert "not known" in done.output


def test_a_name_that_is_no_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"input_tokens": 5, "ttft": 1}\n')
    done = CliRunner().invoke(app, [str(tmp_path / "mine.jsonl"), "--out", str(tmp_path / "run"), "--name", "a/b"])
    assert isinstance(done.exception, InputError)
    assert done.exception.field == "--name"
    assert not (tmp_path / "run").exists()


def test_measured_rows_give_their_own_figures(tmp_path: Path, shared_dir: Path) -> None:
    file = shared_dir / "measured/h200-vllm-0.24/llama3-8b/grid_none.jsonl.gz"
    done = CliRunner().invoke(app, [str(file), "--out", str(tmp_path / "run"), "--json"])
    assert json.loads(done.output)["requests"] == 86
