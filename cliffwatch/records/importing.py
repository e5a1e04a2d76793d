"""A file of other tools' measurements kept as a run folder, so that all that reads runs reads it."""

from __future__ import annotations

import hashlib
import time
from importlib.metadata import version
from pathlib import Path

from cliffwatch.records.files import final_path
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.foreign import Foreign, read_foreign
from cliffwatch.records.manifest import Manifest, RunState, WorkerInfo
from cliffwatch.records.parquet import write_shard
from cliffwatch.records.schema import ARROW_SCHEMA

STATED = "imported: the figures are as the file states them; nothing here says how they were measured"
UNTOLD = {
    "sent": "imported: the file has no times; requests stand one after the other, and rates mean nothing",
    "lag": "imported: the file does not say when requests were due; they count as sent in time",
}


def import_run(path: Path, out: Path, *, name: str, engine: str | None) -> tuple[Manifest, Foreign]:
    """Write the file's requests to a new run folder.

    Raises:
        InputError: the file cannot be understood (`read_foreign`).
        RunError: the folder is taken or cannot be written.
    """
    foreign = read_foreign(path)
    with foreign.session() as cursor:
        ((last_ns, model),) = cursor.execute("SELECT max(ended_ns), mode(model) FROM kept").fetchall()
        columns = ", ".join(ARROW_SCHEMA.names)
        table = cursor.sql(f"SELECT {columns} FROM kept ORDER BY request_id").to_arrow_table()  # noqa: S608
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    manifest = Manifest(
        run_id=f"{name}-{digest[:8]}",
        name=name,
        state=RunState.RUNNING,
        created_unix_s=time.time(),
        t0_unix_ns=foreign.zero_unix_ns,
        target=path.name,
        endpoint="completions",
        model=model,
        engine=engine,
        open_loop=False,
        seed=0,
        schedule_hash=digest,
        workload={"name": name},
        planned_requests=foreign.requests,
        prompt_method="imported",
        versions={"cliffwatch": version("cliffwatch")},
        warnings=(STATED, *(said for what, said in UNTOLD.items() if what in foreign.missing)),
    )
    create_run(out, manifest, f"# Not a workload: measurements of {path.name} were imported.\nname: {name}\n")
    write_shard(final_path(out, 0), iter([table.cast(ARROW_SCHEMA)]), {})
    worker = WorkerInfo(shard=0, state="imported", rows=foreign.requests)
    load_s = None if last_ns is None else last_ns / 1e9
    return close_run(out, state=RunState.COMPLETE, workers=(worker,), load_s=load_s), foreign
