"""The worker's pen: parts and shards, death at any moment, full disks."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, journal_path, list_run
from cliffwatch.records.fold import fold_shard
from cliffwatch.records.folder import create_run
from cliffwatch.records.schema import ARROW_SCHEMA
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_manifest, make_row


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return create_run(tmp_path / "run", make_manifest(), "name: x\n")


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def ids_in(path: Path) -> list[int]:
    found: list[int] = pq.read_table(path, columns=["request_id"])["request_id"].to_pylist()
    return found


def names(run_dir: Path) -> list[str]:
    return sorted(path.name for path in (run_dir / "shards").iterdir())


def test_a_clean_end_is_one_shard_and_nothing_else(run_dir: Path) -> None:
    writer = ShardWriter(run_dir, 0)
    for i in range(5):
        writer.issued(i, i)
        writer.ended(make_row(i))
    assert writer.in_flight == 0
    writer.close()
    writer.close()
    assert names(run_dir) == ["worker-000.parquet"]
    table = pq.read_table(final_path(run_dir, 0))
    assert table.schema.equals(ARROW_SCHEMA)
    assert table["request_id"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["chunk_gaps_us"][0].as_py() == [10_000] * 7
    assert table["finish_reason"][0].as_py() is None


def test_rows_become_parts_as_time_passes(run_dir: Path) -> None:
    clock = Clock()
    writer = ShardWriter(run_dir, 0, part_interval_s=2.0, clock=clock)
    for i in range(3):
        writer.issued(i, i)
        writer.ended(make_row(i))
        clock.now_s += 2.0
    writer.roll_if_due()
    assert [ids_in(path) for path in list_run(run_dir).parts[0]] == [[0, 1], [2]]
    assert journal_path(run_dir, 0).read_bytes().count(b"\n") == 1
    writer.close()
    assert ids_in(final_path(run_dir, 0)) == [0, 1, 2]


def test_parts_come_less_often_as_a_run_gets_long(run_dir: Path) -> None:
    clock = Clock()
    writer = ShardWriter(run_dir, 0, part_interval_s=2.0, clock=clock)
    for i in range(600):
        clock.now_s += 2.0
        writer.ended(make_row(i))
    # Every 2 s up to 40 s, then by a twentieth of the time (20 ln 15 = 54 parts) up to 600 s, then every 30 s.
    assert 80 <= len(list_run(run_dir).parts[0]) <= 100
    writer.close()
    assert ids_in(final_path(run_dir, 0)) == list(range(600))


def test_memory_holds_so_many_rows_whatever_the_rate(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cliffwatch.records.writer._PART_ROWS", 10)
    writer = ShardWriter(run_dir, 0, clock=Clock())  # no time passes
    for i in range(25):
        writer.ended(make_row(i))
    assert [len(ids_in(path)) for path in list_run(run_dir).parts[0]] == [10, 10]
    writer.close()
    assert ids_in(final_path(run_dir, 0)) == list(range(25))


def test_what_is_in_flight_at_the_end_stays_in_the_journal(run_dir: Path) -> None:
    writer = ShardWriter(run_dir, 0)
    writer.issued(7, 70)
    writer.issued(8, 80)
    writer.ended(make_row(8))
    writer.close()
    assert names(run_dir) == ["worker-000.journal", "worker-000.parquet"]
    fold = fold_shard(run_dir, 0)
    assert (fold.open, fold.rows, fold.issued) == ({7: 70}, 1, 2)


def test_a_shard_is_written_once(run_dir: Path) -> None:
    writer = ShardWriter(run_dir, 0)
    with pytest.raises(RunError, match="taken"):
        ShardWriter(run_dir, 0)
    writer.close()
    with pytest.raises(RunError, match="already written"):
        ShardWriter(run_dir, 0)


WRITE_FOREVER = """
import sys, time
from pathlib import Path
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_row
writer = ShardWriter(Path(sys.argv[1]), 0, part_interval_s=0.004)
for i in range(10**9):
    writer.issued(i, i)
    print(f"i {i}", flush=True)
    if i >= 3:
        writer.ended(make_row(i - 3))
        print(f"e {i - 3}", flush=True)
"""


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_loses_only_what_is_in_flight(run_dir: Path, seed: int) -> None:
    """A writer that rolls a part every few rows is killed at a random instant; it says on a pipe what it has done."""
    process = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(run_dir)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = process.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.0, 0.2))
    process.send_signal(signal.SIGKILL)
    said += process.stdout.read()
    process.wait()
    process.stdout.close()
    words = [line.split() for line in said.decode().splitlines()]
    issued = {int(word[1]) for word in words if word[0] == "i" and len(word) == 2}
    ended = {int(word[1]) for word in words if word[0] == "e" and len(word) == 2}

    fold = fold_shard(run_dir, 0)
    rows = ids_in(final_path(run_dir, 0))
    assert len(rows) == len(set(rows)), "no row twice"
    assert ended <= set(rows), "no reported row lost"
    assert issued <= set(rows) | fold.open.keys(), "no reported request forgotten"
    assert not set(rows) & fold.open.keys()
    # Between the writer's doing and its saying so, one more of each may have happened; the last line may be torn.
    assert len(rows) <= len(ended) + 2
    assert fold.issued == len(rows) + len(fold.open)
    assert fold.issued <= len(issued) + 2


FILL = """
import sys, resource
from pathlib import Path
from cliffwatch.errors import RunError
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_row
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
writer = ShardWriter(Path(sys.argv[1]), 0, part_interval_s=0.02)
done = 0
try:
    for i in range(1_000_000):
        writer.issued(i, i)
        writer.ended(make_row(i))
        done += 1
except RunError as error:
    print(done, error, sep="\\n")
"""


def fill(run_dir: Path, *limit: str) -> tuple[int, str]:
    """Write until the disk refuses; returns the rows that were taken and what the error said."""
    output = subprocess.run(
        [sys.executable, "-c", FILL, str(run_dir), *limit], capture_output=True, text=True, timeout=60, check=True
    )
    done, message = output.stdout.splitlines()
    return int(done), message


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 300 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_said_clearly_and_keeps_what_was_written(tiny_disk: Path) -> None:
    run_dir = create_run(tiny_disk / "run", make_manifest(), "name: x\n")
    done, message = fill(run_dir)
    assert "No space left on device" in message
    assert "shards" in message
    with pytest.raises(RunError, match="No space left"):
        fold_shard(run_dir, 0)
    subprocess.run(["mount", "-o", "remount,size=3m", str(tiny_disk)], check=True)
    fold_shard(run_dir, 0)
    rows = ids_in(final_path(run_dir, 0))
    assert done > 10
    assert rows[:done] == list(range(done))
    assert len(rows) <= done + 1
    assert not [name for name in names(run_dir) if name.endswith(".new")]


def test_a_file_size_limit_keeps_whole_lines(run_dir: Path) -> None:
    """The kernel takes a piece of the line that meets the limit: the piece must not stay."""
    done, message = fill(run_dir, "20000")
    assert "File too large" in message
    fold = fold_shard(run_dir, 0)
    assert fold.damaged_lines == 0
    assert set(range(done)) <= set(ids_in(final_path(run_dir, 0)))


def test_a_row_the_journal_refused_is_kept_for_the_next_part(tiny_disk: Path) -> None:
    run_dir = create_run(tiny_disk / "run", make_manifest(), "name: x\n")
    writer = ShardWriter(run_dir, 0, part_interval_s=1e9)
    ballast = tiny_disk / "ballast"
    writer.issued(0, 0)
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(10**6))
    with pytest.raises(RunError, match="No space left"):
        writer.ended(make_row(0, error="x" * 8192))
    ballast.unlink()
    writer.close()
    assert ids_in(final_path(run_dir, 0)) == [0]


def test_gaps_that_no_column_holds_cost_no_row(run_dir: Path) -> None:
    writer = ShardWriter(run_dir, 0)
    writer.ended(make_row(0))
    writer.ended(make_row(1, chunk_gaps_us=[5, 2**32], warnings=["w"]))
    writer.ended(make_row(2, prompt_ttfts_us=[-1]))
    writer.close()
    table = pq.read_table(final_path(run_dir, 0))
    assert [gaps is None for gaps in table["chunk_gaps_us"].to_pylist()] == [False, True, True]
    assert [len(warnings or ()) for warnings in table["warnings"].to_pylist()] == [0, 2, 1]


def test_a_truncated_part_is_named(run_dir: Path) -> None:
    clock = Clock()
    writer = ShardWriter(run_dir, 0, clock=clock)
    clock.now_s += 3
    writer.ended(make_row(0))
    (part,) = list_run(run_dir).parts[0]
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match=r"worker-000\.part-0000\.parquet: is truncated or damaged"):
        writer.close()
    part.write_bytes(whole)
    writer.close()
    assert ids_in(final_path(run_dir, 0)) == [0]


def test_a_missing_part_is_noticed(run_dir: Path) -> None:
    clock = Clock()
    writer = ShardWriter(run_dir, 0, clock=clock)
    clock.now_s += 3
    writer.ended(make_row(0))
    list_run(run_dir).parts[0][0].unlink()
    with pytest.raises(RunError, match="knows of 1 rows in parts, 0 are there"):
        writer.close()
