"""Reading a run, live or closed, through DuckDB: one view, `requests`, of the stored columns and the figures."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from cliffwatch.errors import RunError
from cliffwatch.records.figures import view_columns
from cliffwatch.records.files import Listing, final_path, list_run, shards_dir
from cliffwatch.records.manifest import Manifest, RunState, read_manifest
from cliffwatch.records.parquet import check_file
from cliffwatch.records.schema import ARROW_SCHEMA, LATER_COLUMNS

_ATTEMPTS = 20
Sources = dict[int, tuple[Path, ...]]


class RunReader:
    """The rows of one run folder. Safe for use by several threads.

    A closed run is read where it lies. A run that is still written is copied to memory, new parts as they come: its
    files are replaced under a reader's hands, and a query must see each row once.

    Raises:
        RunError: the folder holds no run, or its manifest is damaged.
    """

    def __init__(self, run_dir: Path | str) -> None:
        self.dir = Path(run_dir)
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        self._loaded: Sources | None = None
        self._closed_run = False
        read_manifest(self.dir)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands now. Raises RunError."""
        return read_manifest(self.dir)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A cursor with the view `requests` over what is on the disk now; close it, or let it go.

        Rows that come later are seen after the next `connect`. Cursors of one reader share its cached data. Damage
        inside a shard shows only when a query meets it, as DuckDB's error: `session` and `fetch` say it as a RunError.

        Raises:
            RunError: a shard is truncated, damaged or cannot be read; the error names it.
        """
        with self._lock:
            if not self._closed_run:
                self._refresh()
            if self._database is None:
                raise RunError("was not loaded", file=self.dir)
            return self._database.cursor()

    def fetch(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query over the view `requests`. Raises RunError where the shards cannot be read."""
        with self.session() as cursor:
            return cursor.execute(sql, parameters).fetchall()

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """`connect` for a `with` block in which shards that cannot be read are a RunError."""
        with self.connect() as cursor, _saying(self.dir):
            yield cursor

    def count(self) -> int:
        """Rows so far, of all phases and outcomes. Raises RunError."""
        return int(self.fetch("SELECT count(*) FROM requests")[0][0])

    def _refresh(self) -> None:
        for _ in range(_ATTEMPTS):
            manifest = self.manifest  # looked at first: a closed run has its final files
            closed = manifest.state is not RunState.RUNNING
            sources = _sources(list_run(self.dir))
            if not closed and sources == self._loaded:
                return
            try:
                if closed:
                    self._view_files(sources, manifest)
                else:
                    self._copy_files(sources)
            except FileNotFoundError:  # folded into its shard since it was listed
                continue
            self._closed_run = closed
            self._loaded = sources
            return
        raise RunError("changes too fast to be read", file=self.dir)

    def _view_files(self, sources: Sources, manifest: Manifest) -> None:
        files = [path for paths in sources.values() for path in paths]
        rows = sum(check_file(path).num_rows for path in files)
        _check_whole(manifest, self.dir, sources, rows)
        with _saying(self.dir):
            self._database = connect_files(files)

    def _copy_files(self, sources: Sources) -> None:
        if self._database is None:
            self._database = new_database()
            create_empty(self._database)
            create_view(self._database, "kept")
        before = self._loaded or {}
        with _transaction(self._database):
            for shard, files in sources.items():
                known = before.get(shard, ())
                if files[: len(known)] != known:
                    self._database.execute("DELETE FROM kept WHERE _shard = ?", [shard])
                    known = ()
                for path in files[len(known) :]:
                    check_file(path)
                    _insert(self._database, shard, path)


def connect_files(files: Sequence[Path]) -> duckdb.DuckDBPyConnection:
    """A database with the view `requests` over these Parquet files, which must stay where they are."""
    database = new_database()
    if not files:
        create_empty(database)
        create_view(database, "kept")
    elif set(database.from_query(f"FROM {_parquet(files)}").columns) >= LATER_COLUMNS:
        create_view(database, _parquet(files))
    else:  # an older version wrote it: `kept` has no rows, but all columns
        create_empty(database)
        create_view(database, f"(FROM kept UNION ALL BY NAME FROM {_parquet(files)})")
    return database


def _check_whole(manifest: Manifest, run_dir: Path, sources: Sources, rows: int) -> None:
    """A closed run has the rows that it was closed with: what is gone would be judged as if it had never been."""
    for worker in manifest.workers:
        if worker.rows and worker.shard not in sources:
            raise RunError(f"is missing: it held {worker.rows} rows", file=final_path(run_dir, worker.shard))
    if manifest.accounting is not None and rows != manifest.accounting.issued:
        raise RunError(
            f"holds {rows} rows, but {manifest.accounting.issued} requests were accounted for", file=shards_dir(run_dir)
        )


@contextmanager
def _saying(place: Path) -> Iterator[None]:
    """What DuckDB finds wrong with a file, in its many ways, as a RunError; a faulty query stays what it is."""
    try:
        yield
    except (duckdb.ParserException, duckdb.SyntaxException, duckdb.BinderException, duckdb.CatalogException):
        raise
    except (duckdb.Error, UnicodeDecodeError) as error:
        said = "".join(letter for letter in str(error).splitlines()[0] if letter.isprintable())
        raise RunError(f"cannot be read: a shard is damaged inside ({said})", file=place) from error
    except RuntimeError as error:
        if "interrupted" in str(error).lower():  # DuckDB takes Ctrl-C for itself
            raise KeyboardInterrupt from error
        raise


def create_empty(database: duckdb.DuckDBPyConnection) -> None:
    """A table `kept` for rows of a run, each with the shard that it came from."""
    database.register("nothing", ARROW_SCHEMA.empty_table())
    database.execute("CREATE TABLE kept AS SELECT NULL::INTEGER AS _shard, * FROM nothing LIMIT 0")
    database.unregister("nothing")


def create_view(database: duckdb.DuckDBPyConnection, origin: str) -> None:
    """The view `requests`, with its figures, over a table expression with a run's columns."""
    database.execute(f"CREATE VIEW requests AS SELECT {view_columns()} FROM {origin}")  # noqa: S608  ours, quoted


def new_database() -> duckdb.DuckDBPyConnection:
    """An empty one in memory, which fetches nothing from anywhere."""
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": False})


def _sources(listing: Listing) -> Sources:
    return {source: tuple(files) for source, files in listing.sources().items()}


@contextmanager
def _transaction(database: duckdb.DuckDBPyConnection) -> Iterator[None]:
    database.begin()
    try:
        yield
    except BaseException:
        database.rollback()
        raise
    database.commit()


def _insert(database: duckdb.DuckDBPyConnection, shard: int, path: Path) -> None:
    statement = f"INSERT INTO kept BY NAME SELECT ?::INTEGER AS _shard, * FROM {_parquet([path])}"  # noqa: S608
    try:
        with _saying(path):
            database.execute(statement, [shard])
    except RunError as error:
        if not path.exists():
            raise FileNotFoundError(path) from error
        raise


def _parquet(files: Sequence[Path]) -> str:
    """The table function over exactly these files: quotes doubled, signs of a pattern taken literally.

    Nor may a folder called `batch=16` stand in for a column, as DuckDB has it by default.
    """
    literal = (re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''") for path in files)
    return "read_parquet([" + ", ".join(f"'{name}'" for name in literal) + "], hive_partitioning = false)"
