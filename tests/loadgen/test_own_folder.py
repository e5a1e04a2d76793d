"""Folders of workers that ship their rows: those of the dead go, those of the living and whole shards stay."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadgen import own_folder as module
from loadgen.own_folder import KEPT_S, PREFIX, OwnFolder, remove_abandoned


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def abandoned(folder: Path, *names: str, age_s: float = 3600.0) -> Path:
    path = folder / f"{PREFIX}{'-'.join(names) or 'nothing'}-{age_s:.0f}"
    (path / "shards").mkdir(parents=True)
    for name in names:
        (path / "shards" / name).touch()
    for one in (path / "shards", path):
        os.utime(one, (time.time() - age_s,) * 2)
    return path


def test_what_dead_workers_left_goes_and_a_whole_shard_stays_for_a_week(temporary: Path) -> None:
    whole = "worker-003.parquet"
    gone = [
        abandoned(temporary),
        abandoned(temporary, "worker-003.journal", "worker-003.part-0000.parquet"),
        abandoned(temporary, whole, age_s=KEPT_S + 60),
    ]
    stay = [abandoned(temporary, whole), abandoned(temporary, "worker-003.journal", age_s=5)]
    (temporary / f"{PREFIX}file").touch()
    linked = temporary / f"{PREFIX}link"
    (temporary / "elsewhere").mkdir()
    linked.symlink_to(temporary / "elsewhere")
    own = OwnFolder()
    assert not any(path.exists() for path in gone)
    assert all(path.is_dir() for path in (*stay, own.path / "shards", linked, temporary / "elsewhere"))
    own.remove()
    own.release()
    assert not own.path.exists()


def test_a_folder_is_kept_while_its_worker_lives_and_no_longer(temporary: Path) -> None:
    script = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from loadgen.own_folder import OwnFolder\n"
        "print(OwnFolder().path, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(temporary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        for one in (path / "shards", path):
            os.utime(one, (0, 0))
        remove_abandoned()
        assert path.is_dir()
        process.kill()
    remove_abandoned()
    assert not path.exists()
