"""Lists of runs: newest first, damaged ones said, live ones told from dead ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.folder import create_run
from cliffwatch.records.runs import open_runs
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_manifest, make_run


def test_newest_first_and_damaged_last(tmp_path: Path) -> None:
    for name, created in (("old", 1.0), ("new", 3.0), ("middle", 2.0)):
        make_run(tmp_path / name, 10, manifest=make_manifest(run_id=name, created_unix_s=created))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text('{"format": 1}')
    (tmp_path / "no-run").mkdir()
    (tmp_path / "file").write_text("x")
    runs = open_runs(tmp_path)
    assert [run.dir.name for run in runs] == ["new", "middle", "old", "broken"]
    assert runs[-1].manifest is None
    assert runs[-1].problem is not None
    assert "manifest.json" in runs[-1].problem


def test_a_run_folder_itself_is_a_list_of_one(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 10)
    assert [summary.dir for summary in open_runs(run.dir)] == [run.dir]


def test_live_while_a_worker_writes(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "run", make_manifest(), "name: x\n")
    assert not open_runs(tmp_path)[0].live
    writer = ShardWriter(run_dir, 0)
    assert open_runs(tmp_path)[0].live
    writer.close()
    assert not open_runs(tmp_path)[0].live


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be listed"):
        open_runs(tmp_path / "nowhere")
