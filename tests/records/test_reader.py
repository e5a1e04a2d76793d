"""Reading runs: live and closed alike, each row once even while shards are folded, damage named."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, list_run, part_path
from cliffwatch.records.fold import clear_shard, fold_shard
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import RunState
from cliffwatch.records.parquet import write_part
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import ARROW_SCHEMA, LATER_COLUMNS
from cliffwatch.records.writer import ShardWriter
from tests.records.synthetic import make_manifest, make_row, make_run

COUNT = "SELECT count(*), count(DISTINCT request_id) FROM requests"


def test_a_closed_run_has_all_columns_and_rows(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 1000)
    reader = RunReader(run.dir)
    assert reader.count() == 1000
    with reader.connect() as connection:
        columns = [row[0] for row in connection.execute("DESCRIBE requests").fetchall()]
        assert columns[: len(ARROW_SCHEMA)] == ARROW_SCHEMA.names
        assert len(columns) == len(set(columns))
        assert connection.execute(COUNT).fetchall() == [(1000, 1000)]
    total = run.table["bytes_received"].to_numpy().sum()
    assert reader.fetch("SELECT sum(bytes_received)::BIGINT FROM requests WHERE batch >= ?", [1]) == [(total,)]


def test_a_run_without_rows_can_be_asked(tmp_path: Path) -> None:
    for state in (RunState.RUNNING, RunState.PARTIAL):
        reader = RunReader(make_run(tmp_path / state, 0, state=state, workers=0).dir)
        assert reader.count() == 0
        assert reader.fetch(COUNT) == [(0, 0)]


@pytest.mark.parametrize("lacking", [LATER_COLUMNS, {"tenant"}])
@pytest.mark.parametrize("state", [RunState.COMPLETE, RunState.RUNNING])
def test_a_run_of_an_older_version_has_null_for_later_columns(
    tmp_path: Path, state: RunState, lacking: set[str]
) -> None:
    run = make_run(tmp_path / "run", 100, state=state, workers=2, parts=1)
    for path in (run.dir / "shards").glob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(list(lacking)), path)
    reader = RunReader(run.dir)
    assert reader.fetch("SELECT count(*), count(tenant), count(DISTINCT request_id) FROM requests") == [(100, 0, 100)]
    if state is RunState.RUNNING:
        fold_shard(run.dir, 0)
        assert pq.read_table(final_path(run.dir, 0)).schema.equals(ARROW_SCHEMA)


def test_a_live_run_grows(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "run", make_manifest(), "name: x\n")
    reader = RunReader(run_dir)
    now_s = [0.0]
    writer = ShardWriter(run_dir, 0, clock=lambda: now_s[0])
    seen = []
    for i in range(6):
        now_s[0] += 1.0
        writer.issued(i, i)
        writer.ended(make_row(i))
        seen.append(reader.fetch(COUNT)[0][0])
    assert seen == [0, 2, 2, 4, 4, 6]
    writer.ended(make_row(99))
    writer.close()
    assert reader.fetch(COUNT) == [(7, 7)]
    close_run(run_dir, state=RunState.COMPLETE)
    assert reader.fetch(COUNT) == [(7, 7)]
    assert reader.manifest.state is RunState.COMPLETE


@pytest.mark.parametrize("name", ["a'b", "a[1]", "a*b", "a?b", 'a"b', "a\\b", "a b é", "a=b", "batch=9"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    for state in (RunState.RUNNING, RunState.COMPLETE):
        run = make_run(tmp_path / state / name, 10, state=state, parts=1)
        assert RunReader(run.dir).fetch(COUNT + " WHERE batch IN (1, 2, 4, 8, 16)") == [(10, 10)]


@pytest.mark.parametrize("attempt", range(2))
def test_each_row_is_seen_once_while_parts_are_folded(tmp_path: Path, attempt: int) -> None:
    run = make_run(tmp_path / "run", 400, state=RunState.RUNNING, workers=2, parts=20, gaps=False, seed=attempt)
    old = RunReader(run.dir)
    old.connect()
    done = threading.Event()

    def fold() -> None:
        for shard in (0, 1):
            fold_shard(run.dir, shard)
            clear_shard(run.dir, shard, journal=True)
        close_run(run.dir, state=RunState.COMPLETE)
        done.set()

    folding = threading.Thread(target=fold)
    folding.start()
    looks = 0
    while not done.is_set() or not looks:
        for reader in (old, RunReader(run.dir)):
            assert reader.count() == 400
            assert reader.fetch(COUNT) == [(400, 400)]
            looks += 1
    folding.join()
    assert old.fetch(COUNT) == [(400, 400)]


def test_a_listing_torn_by_a_fold_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is read while the fold goes on: the look sees neither the parts that went nor the shard that came."""
    run = make_run(tmp_path / "run", 10, state=RunState.RUNNING, workers=1, parts=3)
    original = Path.iterdir
    torn = [True]

    def iterdir(folder: Path) -> object:
        entries = list(original(folder))
        if torn.pop() if torn else False:
            fold_shard(run.dir, 0)
            clear_shard(run.dir, 0, journal=True)
            return iter(entries[:1])
        return iter(entries)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert list_run(run.dir).sources() == {0: [final_path(run.dir, 0)]}


def test_many_threads_may_read_one_live_run(tmp_path: Path) -> None:
    run_dir = create_run(tmp_path / "run", make_manifest(), "name: x\n")
    reader = RunReader(run_dir)
    wrong: list[object] = []

    def read() -> None:
        before = 0
        for _ in range(30):
            rows, distinct = reader.fetch(COUNT)[0]
            if rows != distinct or rows < before:
                wrong.append((rows, distinct, before))
            before = rows

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        write_part(part_path(run_dir, 0, number), [make_row(number * 10 + i) for i in range(10)])
    for thread in threads:
        thread.join()
    assert wrong == []
    assert reader.fetch(COUNT) == [(200, 200)]


@pytest.mark.parametrize("keep", [0, 3, 4, 1000, -1, -8])
@pytest.mark.parametrize("state", [RunState.COMPLETE, RunState.RUNNING])
def test_a_truncated_shard_is_named(tmp_path: Path, keep: int, state: RunState) -> None:
    run = make_run(tmp_path / "run", 200, state=state, parts=1)
    path = final_path(run.dir, 1) if state is RunState.COMPLETE else part_path(run.dir, 1, 0)
    path.write_bytes(path.read_bytes()[:keep])
    reader = RunReader(run.dir)
    for ask in (reader.connect, reader.count, lambda: reader.fetch(COUNT)):
        with pytest.raises(RunError, match=path.name) as caught:
            ask()
        assert caught.value.file == str(path)


def test_damage_inside_a_shard_is_an_error_and_no_traceback(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 20_000)
    path = final_path(run.dir, 0)
    data = bytearray(path.read_bytes())
    for place in range(100, len(data) - 20_000, 97):
        data[place] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(RunError, match="cannot be read"):
        RunReader(run.dir).fetch("SELECT sum(ttft_s), max(max_gap_s), max(error) FROM requests")


def test_a_faulty_query_is_not_taken_for_a_damaged_run(tmp_path: Path) -> None:
    reader = RunReader(make_run(tmp_path / "run", 10).dir)
    for query in ("SELECT nonsense FROM requests", "SELEC 1", "SELECT 1 FROM nowhere"):
        with pytest.raises(duckdb.Error):
            reader.fetch(query)


@pytest.mark.parametrize("state", [RunState.COMPLETE, RunState.RUNNING])
def test_random_damage_is_never_a_traceback(tmp_path: Path, state: RunState) -> None:
    """Bytes changed at random are either not noticed (nothing in a Parquet file guards its data) or a RunError."""
    run = make_run(tmp_path / "run", 500, state=state, parts=1, workers=1)
    path = final_path(run.dir, 0) if state is RunState.COMPLETE else part_path(run.dir, 0, 0)
    whole = path.read_bytes()
    rng = random.Random(3)
    caught = 0
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 5, 50])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            RunReader(run.dir).fetch("SELECT hash(COLUMNS(*)) FROM requests")
        except RunError:
            caught += 1
    assert caught > 10


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 10)
    pq.write_table(pa.table({"x": [1]}), final_path(run.dir, 0))
    with pytest.raises(RunError, match="lacks columns"):
        RunReader(run.dir).connect()


@pytest.mark.parametrize("state", [RunState.COMPLETE, RunState.RUNNING])
def test_a_column_that_no_run_has_is_refused(tmp_path: Path, state: RunState) -> None:
    """As when damage hits the name of a column that older runs lack: its figures would be null, and nobody told."""
    run = make_run(tmp_path / "run", 10, state=state, parts=1, workers=1)
    path = final_path(run.dir, 0) if state is RunState.COMPLETE else part_path(run.dir, 0, 0)
    table = pq.read_table(path)
    names = ["attemp`_sent_ns" if name == "attempt_sent_ns" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), path)
    with pytest.raises(RunError, match="a column that no run has"):
        RunReader(run.dir).connect()


def test_no_run_no_reader(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no run"):
        RunReader(tmp_path)
    with pytest.raises(RunError, match="holds no run"):
        RunReader(tmp_path / "nowhere")


def test_a_run_whose_shards_are_gone(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 10)
    reader = RunReader(run.dir)
    assert reader.fetch(COUNT) == [(10, 10)]
    for path in (run.dir / "shards").iterdir():
        path.unlink()
    (run.dir / "shards").rmdir()
    with pytest.raises(RunError):
        reader.fetch(COUNT)
    with pytest.raises(RunError, match="cannot be listed"):
        RunReader(run.dir).connect()
