"""The life of a run folder: claiming it, closing it, and being interrupted while closing it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cliffwatch.errors import RunError
from cliffwatch.records import fold, folder
from cliffwatch.records.files import final_path, journal_path, list_run, lost_path
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import Manifest, RunState, VerdictState, WorkerInfo, read_manifest
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_manifest, make_row


@dataclass(frozen=True)
class Plan:
    """What the schedule says of request `request_id`."""

    request_id: int
    endpoint: str = "chat"
    cache: str = "none"
    batch: int = 2
    output_tokens: int = 9
    phase: Phase = Phase.MEASURED
    model: str | None = None
    tenant: str | None = "t"
    priority: int | None = -1
    session: int | None = 5
    turn: int | None = 0

    @property
    def intended_ns(self) -> int:
        return self.request_id * 1000

    @property
    def input_tokens(self) -> int:
        return 100 + self.request_id


def start(path: Path) -> Path:
    return create_run(path, make_manifest(), "name: x\n")


def worker(shard: int, state: str = "finished") -> WorkerInfo:
    return WorkerInfo(shard=shard, host="h", pid=1, state=state, rows=0)


def dead_run(path: Path) -> Path:
    """Worker 0 had ids 0, 2, .. and ended cleanly; worker 1 had 1, 3, .., 9, ended 1 and 3 (in a part) and 5 (in the
    journal), and died with 7 in flight; 9 was never sent."""
    run_dir = start(path)
    clean = ShardWriter(run_dir, 0)
    for i in range(0, 10, 2):
        clean.issued(i, i)
        clean.ended(make_row(i, outcome=Outcome.HTTP_5XX if i == 4 else Outcome.OK))
    clean.close()
    now_s = [0.0]
    dead = ShardWriter(run_dir, 1, clock=lambda: now_s[0])
    for i in (1, 3):
        dead.issued(i, i)
        dead.ended(make_row(i, worker=1))
    now_s[0] = 10.0
    dead.roll_if_due()
    dead.issued(5, 5)
    dead.issued(7, 7123)
    now_s[0] = 10.1
    dead.ended(make_row(5, worker=1, outcome=Outcome.LATE, sent_ns=None))
    dead._journal.close()  # the lock goes with the process
    with journal_path(run_dir, 1).open("ab") as stream:
        stream.write(b'{"request_id":7,"outco')  # torn
    return run_dir


def close(run_dir: Path, **changes: Any) -> Manifest:
    arguments: dict[str, Any] = {
        "state": RunState.COMPLETE,
        "workers": [worker(0), worker(1, "lost")],
        "load_s": 12.5,
        "plans": Plan,
        "assigned": {1: [1, 3, 5, 7, 9]},
    }
    return close_run(run_dir, **(arguments | changes))


def assert_closed_right(run_dir: Path, manifest: Manifest) -> None:
    accounting = manifest.accounting
    assert accounting is not None
    assert accounting.balanced
    assert accounting.issued == 10
    assert (accounting.ok, accounting.failed, accounting.late, accounting.lost, accounting.cancelled) == (6, 1, 1, 2, 0)
    assert manifest.state is RunState.PARTIAL
    assert manifest.partial_reason == "a worker died: 2 requests were lost"
    assert [(w.shard, w.rows, w.state) for w in manifest.workers] == [(0, 5, "finished"), (1, 3, "lost")]
    assert sorted(p.name for p in (run_dir / "shards").iterdir()) == [
        "lost.parquet",
        "worker-000.parquet",
        "worker-001.parquet",
    ]
    lost = RunReader(run_dir).fetch(
        "SELECT request_id, worker, intended_ns, input_tokens, error, sent_ns FROM requests"
        " WHERE outcome = 'lost' ORDER BY 1"
    )
    assert lost == [
        (7, 1, 7123, 107, "in flight when the worker died", None),
        (9, 1, 9000, 109, "never sent: worker died", None),
    ]
    assert RunReader(run_dir).fetch("SELECT list(request_id ORDER BY request_id) FROM requests") == [(list(range(10)),)]


def test_create_writes_what_is_known_before_the_load(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "a" / "b" / "run", make_manifest(), "name: é\n", "objectives: []\n")
    assert read_manifest(run_dir).state is RunState.RUNNING
    assert (run_dir / "workload.yaml").read_text(encoding="utf-8") == "name: é\n"
    assert (run_dir / "slo.yaml").read_text(encoding="utf-8") == "objectives: []\n"


def test_create_refuses_a_folder_that_holds_a_run(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    before = (run_dir / "manifest.json").read_bytes()
    with pytest.raises(RunError, match="already holds a run"):
        create_run(run_dir, make_manifest(run_id="other"), "name: y\n")
    assert (run_dir / "manifest.json").read_bytes() == before
    (run_dir / "manifest.json").unlink()
    with pytest.raises(RunError, match="already holds the shards of a run"):
        start(run_dir)
    assert (run_dir / "workload.yaml").exists(), "what was there stays"


def test_create_refuses_a_file_and_a_path_under_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(RunError, match="cannot be written"):
            start(path)
    assert (tmp_path / "file").read_text() == "mine"


def test_create_on_a_read_only_disk_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        with pytest.raises(RunError, match="Read-only file system"):
            start(disk / "run")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_create_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs")
    try:
        with pytest.raises(RunError, match="No space left"):
            create_run(disk / "run", make_manifest(), "# " + "x" * 100_000)
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_create_that_fails_at_the_manifest_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_self: Path, *_arguments: Any, **_options: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RunError, match=r"manifest\.json: cannot be written: No space left"):
        start(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_dead_worker_is_recovered_and_its_requests_are_counted(tmp_path: Path) -> None:
    run_dir = dead_run(tmp_path / "run")
    assert_closed_right(run_dir, close(run_dir))


def test_closing_twice_changes_nothing(tmp_path: Path) -> None:
    run_dir = dead_run(tmp_path / "run")
    first = close(run_dir)
    assert close(run_dir, state=RunState.PARTIAL, partial_reason="again") == first
    assert_closed_right(run_dir, first)


class Crash(BaseException):
    """What a kill would be, were it an exception."""


STEPS = [
    (fold, "write_shard"),
    (folder, "fold_shard"),
    (folder, "write_shard"),
    (folder, "connect_files"),
    (folder, "write_manifest"),
    (folder, "clear_shard"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("module", "step"), STEPS)
@pytest.mark.parametrize("call", [1, 2])
def test_a_close_cut_short_anywhere_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, call: int, after: bool
) -> None:
    run_dir = dead_run(tmp_path / "run")
    original = getattr(module, step)
    calls = 0

    def crashing(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < call:
            return original(*arguments, **options)
        if after:
            original(*arguments, **options)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(module, step, crashing)
        try:
            close(run_dir)
        except Crash:
            assert calls == call
    assert_closed_right(run_dir, close(run_dir))


def test_a_complete_run_is_valid(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    for shard in (0, 1):
        writer = ShardWriter(run_dir, shard)
        for i in range(shard, 400, 2):
            writer.issued(i, i)
            writer.ended(make_row(i, worker=shard))
        writer.close()
    manifest = close_run(run_dir, state=RunState.COMPLETE, workers=[worker(0), worker(1)], load_s=1.0)
    assert manifest.verdict is not None
    assert (manifest.state, manifest.verdict.state) == (RunState.COMPLETE, VerdictState.VALID)
    assert read_manifest(run_dir) == manifest
    assert not lost_path(run_dir).exists()


def test_a_run_that_sent_nothing_closes_as_invalid(tmp_path: Path) -> None:
    manifest = close_run(
        start(tmp_path / "run"), state=RunState.PARTIAL, partial_reason="interrupted", workers=[worker(0)]
    )
    assert manifest.accounting is not None
    assert manifest.accounting.issued == 0
    assert manifest.verdict is not None
    assert manifest.verdict.state is VerdictState.INVALID


def test_a_worker_that_never_wrote_is_counted_by_its_schedule(tmp_path: Path) -> None:
    manifest = close_run(
        start(tmp_path / "run"),
        state=RunState.COMPLETE,
        workers=[worker(3, "lost")],
        plans=Plan,
        assigned={3: range(3, 20, 4)},
    )
    assert manifest.accounting is not None
    assert (manifest.accounting.issued, manifest.accounting.lost) == (5, 5)


def test_shards_nobody_named_are_counted_too(tmp_path: Path) -> None:
    manifest = close(dead_run(tmp_path / "run"), workers=[])
    found = {w.shard: (w.state, w.pid) for w in manifest.workers}
    assert found == {0: ("finished", None), 1: ("lost", os.getpid())}


def test_a_lost_request_without_a_shape_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    run_dir = dead_run(tmp_path / "run")
    with pytest.raises(RunError, match="request 7 was lost and nothing tells what it was"):
        close(run_dir, plans=None)
    assert_closed_right(run_dir, close(run_dir))


def test_a_worker_that_still_writes_is_not_closed_over(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    writer = ShardWriter(run_dir, 0)
    with pytest.raises(RunError, match="still written"):
        close_run(run_dir, state=RunState.COMPLETE)
    assert read_manifest(run_dir).state is RunState.RUNNING
    writer.close()
    assert close_run(run_dir, state=RunState.COMPLETE).state is RunState.COMPLETE


def test_one_request_on_two_workers_is_an_error(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    for shard in (0, 1):
        writer = ShardWriter(run_dir, shard)
        writer.ended(make_row(5, worker=shard))
        writer.close()
    with pytest.raises(RunError, match="more than one row"):
        close_run(run_dir, state=RunState.COMPLETE)
    assert read_manifest(run_dir).state is RunState.RUNNING


def test_rows_that_vanished_from_a_shard_are_an_error(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    writer = ShardWriter(run_dir, 0)
    for i in range(4):
        writer.ended(make_row(i))
    writer.close()
    path = final_path(run_dir, 0)
    table = pq.read_table(path)
    pq.write_table(table.slice(1).replace_schema_metadata(pq.read_schema(path).metadata), path)
    with pytest.raises(RunError, match="issued 4 requests, but 3 have a row"):
        close_run(run_dir, state=RunState.COMPLETE)


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    run_dir = dead_run(tmp_path / "run")
    path = final_path(run_dir, 0)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunError, match=r"worker-000\.parquet: is truncated or damaged"):
        close(run_dir)
    assert list_run(run_dir).parts[1], "the sources of the other shard are still there"


def test_damaged_journal_lines_are_said(tmp_path: Path) -> None:
    run_dir = start(tmp_path / "run")
    writer = ShardWriter(run_dir, 0)
    writer.issued(0, 0)
    writer.ended(make_row(0))
    writer._journal.close()
    with journal_path(run_dir, 0).open("ab") as stream:
        stream.write(b"\x00\x00\n")
    manifest = close_run(run_dir, state=RunState.COMPLETE)
    assert manifest.warnings == ("worker 0: 1 lines of its journal were unreadable and were left out",)
