"""One folder in a list of runs: a damaged one is said to be, a live one is told from a dead one."""

from __future__ import annotations

from pathlib import Path

from cliffwatch.records.folder import create_run
from cliffwatch.records.runs import summarise
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_manifest, make_run


def test_a_closed_run_has_its_manifest(tmp_path: Path) -> None:
    summary = summarise(make_run(tmp_path / "run", 10, manifest=make_manifest(run_id="closed")).dir)
    assert summary.manifest is not None
    assert summary.manifest.run_id == "closed"
    assert (summary.live, summary.problem) == (False, None)


def test_a_damaged_one_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 1}')
    summary = summarise(tmp_path)
    assert summary.manifest is None
    assert summary.problem is not None
    assert "manifest.json" in summary.problem


def test_live_while_a_worker_writes(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "run", make_manifest(), "name: x\n")
    assert not summarise(run_dir).live
    writer = ShardWriter(run_dir, 0)
    assert summarise(run_dir).live
    writer.close()
    assert not summarise(run_dir).live
