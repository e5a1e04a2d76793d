"""Run folders made of arithmetic: as many rows as wanted, quickly, with a latency law that tests can compute too.

The law: TTFT = 20 ms + 2 us x input tokens x batch, times a lognormal noise of sigma 0.25; each output token after the
first takes 10 ms + 0.5 ms x (batch - 1), times a lognormal noise of sigma 0.1. Rows are those that a worker's
shard would hold; outcomes other than `ok` are spread by `failures`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cliffwatch.records.files import final_path, part_path, shards_dir
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import Manifest, RunState, WorkerInfo
from cliffwatch.records.parquet import write_shard
from cliffwatch.records.schema import ARROW_SCHEMA, Outcome, Phase, RequestRow

BATCHES = np.array([1, 2, 4, 8, 16])
FAILURE_KINDS = (Outcome.HTTP_5XX, Outcome.HTTP_429, Outcome.TIMEOUT_FIRST_TOKEN, Outcome.STALLED, Outcome.TRUNCATED)
WORKLOAD_TEXT = "name: synthetic\nseed: 7\nduration: 60s\narrivals: {kind: poisson, rate: 4}\n"


@dataclass(frozen=True)
class SyntheticRun:
    """A run folder and what is in it: `table` holds all rows, `manifest` is as it was written."""

    dir: Path
    table: pa.Table
    manifest: Manifest


def make_manifest(**changes: Any) -> Manifest:
    """A manifest of a running run with sensible values; any field can be changed."""
    values: dict[str, Any] = {
        "run_id": "synthetic-7",
        "name": "synthetic",
        "state": RunState.RUNNING,
        "created_unix_s": 1_750_000_000.0,
        "t0_unix_ns": 1_750_000_001_000_000_000,
        "target": "http://127.0.0.1:8000",
        "endpoint": "auto",
        "model": "synthetic-8b",
        "engine": "vllm",
        "open_loop": True,
        "seed": 7,
        "schedule_hash": "0" * 64,
        "workload": {"name": "synthetic"},
        "planned_duration_s": 60.0,
        "prompt_method": "server_tokenize",
    }
    return Manifest.model_validate(values | changes)


def make_row(request_id: int = 0, **changes: Any) -> RequestRow:
    """One `ok` row with sensible values; any field can be changed."""
    values: dict[str, Any] = {
        "request_id": request_id,
        "worker": 0,
        "phase": Phase.MEASURED,
        "endpoint": "chat",
        "model": "synthetic-8b",
        "batch": 1,
        "cache": "none",
        "input_tokens": 1024,
        "server_input_tokens": 1024,
        "max_output_tokens": 8,
        "output_tokens": 8,
        "intended_ns": request_id * 1_000_000,
        "sent_ns": request_id * 1_000_000 + 500_000,
        "first_token_ns": request_id * 1_000_000 + 50_500_000,
        "first_answer_ns": request_id * 1_000_000 + 50_500_000,
        "last_token_ns": request_id * 1_000_000 + 120_500_000,
        "ended_ns": request_id * 1_000_000 + 120_600_000,
        "itl_s": 0.01,
        "chunks": 8,
        "chunk_gaps_us": [10_000] * 7,
        "outcome": Outcome.OK,
        "status": 200,
        "bytes_received": 900,
    }
    return RequestRow(**(values | changes))


def make_table(rows: int, *, seed: int = 7, failures: float = 0.01, rate: float = 4.0, gaps: bool = True) -> pa.Table:
    """`rows` rows by the law of this module, ids 0.. in order of intended time, the first 1 % warm-up."""
    rng = np.random.default_rng(seed)
    ids = np.arange(rows, dtype=np.int64)
    tokens = np.exp(rng.uniform(np.log(1024), np.log(32768), rows)).astype(np.int32)
    batch = BATCHES[np.searchsorted(BATCHES, np.maximum(1, 16 * 1024 // tokens) * rng.random(rows), side="left")]
    wanted = np.clip(np.exp(rng.normal(np.log(24), 0.6, rows)), 2, 128).astype(np.int64)
    intended = np.cumsum(rng.exponential(1 / rate, rows) * 1e9).astype(np.int64)
    sent = intended + (rng.exponential(0.4e-3, rows) * 1e9).astype(np.int64)
    first = sent + ((0.02 + 2e-6 * tokens * batch) * rng.lognormal(0, 0.25, rows) * 1e9).astype(np.int64)
    itl = (0.01 + 0.0005 * (batch - 1)) * rng.lognormal(0, 0.1, rows)
    last = first + (itl * (wanted - 1) * 1e9).astype(np.int64)
    outcome = np.where(rng.random(rows) < failures, rng.integers(1, 1 + len(FAILURE_KINDS), rows), 0)
    ok = outcome == 0
    phase = (ids >= rows // 100).astype(np.int16)
    status = np.where(outcome == 1, 503, np.where(outcome == 2, 429, 200)).astype(np.int16)
    columns: dict[str, pa.Array] = {
        "request_id": pa.array(ids),
        "worker": pa.array((ids % 2).astype(np.int32)),
        "phase": _text(phase, [Phase.WARMUP, Phase.MEASURED]),
        "endpoint": _text((batch > 1).astype(np.int16), ["chat", "completions"]),
        "model": _text(np.zeros(rows, np.int16), ["synthetic-8b"]),
        "batch": pa.array(batch.astype(np.int32)),
        "cache": _text((rng.random(rows) < 0.2).astype(np.int16), ["none", "prefix"]),
        "input_tokens": pa.array(tokens),
        "built_input_tokens": pa.array(tokens.astype(np.int64) * batch),
        "server_input_tokens": pa.array(tokens.astype(np.int64) * batch, mask=~ok),
        "max_output_tokens": pa.array(wanted.astype(np.int32)),
        "output_tokens": pa.array(wanted * batch, mask=~ok),
        "output_tokens_source": _text(np.zeros(rows, np.int16), ["server"], mask=~ok),
        "intended_ns": pa.array(intended),
        "sent_ns": pa.array(sent),
        "first_token_ns": pa.array(first, mask=~ok),
        "first_answer_ns": pa.array(first, mask=~ok),
        "last_token_ns": pa.array(last, mask=~ok),
        "ended_ns": pa.array(np.where(outcome == 3, sent + 120_000_000_000, last + 100_000)),
        "itl_s": pa.array(itl, mask=~ok),
        "chunks": pa.array(np.where(ok, wanted, 0).astype(np.int32)),
        "stalls": pa.array(np.zeros(rows, np.int32)),
        "outcome": _text(outcome.astype(np.int16), [Outcome.OK, *FAILURE_KINDS]),
        "status": pa.array(status),
        "error": pa.array(np.where(ok, None, "made to fail").tolist(), pa.string()),
        "finish_reason": _text(np.zeros(rows, np.int16), ["length"], mask=~ok),
        "bytes_received": pa.array(wanted * 180),
    }
    if gaps:
        columns["chunk_gaps_us"] = _gaps(np.where(ok, wanted - 1, 0), itl)
        columns["max_gap_us"] = pa.array((itl * 1e6).astype(np.uint32), mask=~ok)
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)).cast(field.type) for field in ARROW_SCHEMA]
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


_made: dict[str, tuple[SyntheticRun, dict[Path, bytes | None]]] = {}


def make_run(run_dir: Path, rows: int, *, manifest: Manifest | None = None, **options: Any) -> SyntheticRun:
    """A run folder of `rows` rows: closed, or live (`state=RunState.RUNNING`) with `parts` parts a worker.

    Options go to `_make_run` and on to `make_table`. What was made before in this process is written again as it was.
    """
    manifest = manifest or make_manifest()
    key = repr((rows, manifest.model_dump_json(), sorted(options.items())))
    if key not in _made:
        made = _make_run(run_dir, rows, manifest, **options)
        found = sorted(run_dir.rglob("*"))
        _made[key] = made, {path.relative_to(run_dir): None if path.is_dir() else path.read_bytes() for path in found}
        return made
    made, contents = _made[key]
    run_dir.mkdir(parents=True, exist_ok=True)
    for path, data in contents.items():  # a folder sorts before what is in it
        if data is None:
            (run_dir / path).mkdir(exist_ok=True)
        else:
            (run_dir / path).write_bytes(data)
    return dataclasses.replace(made, dir=run_dir)


def _make_run(
    run_dir: Path,
    rows: int,
    manifest: Manifest,
    *,
    state: RunState = RunState.COMPLETE,
    workers: int = 2,
    parts: int = 0,
    partial_reason: str | None = None,
    **law: Any,
) -> SyntheticRun:
    create_run(run_dir, manifest, WORKLOAD_TEXT)
    table = make_table(rows, **law)
    for shard in range(workers):
        mine = table.take(pa.array(np.arange(shard, rows, workers)))
        mine = mine.set_column(1, ARROW_SCHEMA.field("worker"), pa.array(np.full(mine.num_rows, shard, np.int32)))
        if state is RunState.RUNNING:
            _write_parts(run_dir, shard, mine, parts)
        else:
            write_shard(final_path(run_dir, shard), iter([mine]), {})
    if state is not RunState.RUNNING:
        manifest = close_run(
            run_dir,
            state=state,
            partial_reason=partial_reason,
            workers=[
                WorkerInfo(shard=shard, host="localhost", pid=1, state="finished", rows=0) for shard in range(workers)
            ],
            load_s=float(np.nanmax(table["ended_ns"].to_numpy())) / 1e9 if rows else None,
        )
    return SyntheticRun(run_dir, table, manifest)


def _write_parts(run_dir: Path, shard: int, table: pa.Table, parts: int) -> None:
    edges = np.linspace(0, table.num_rows, parts + 1).astype(int)
    for number, (low, high) in enumerate(pairwise(edges)):
        write_shard(part_path(run_dir, shard, number), iter([table.slice(low, high - low)]), {})
    assert shards_dir(run_dir).is_dir()


def _text(codes: np.ndarray[Any, Any], words: list[Any], mask: np.ndarray[Any, Any] | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int16(), mask=mask), pa.array(map(str, words), pa.string())
    )


def _gaps(counts: np.ndarray[Any, Any], itl_s: np.ndarray[Any, Any]) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    values = np.repeat(itl_s * 1e6, counts).astype(np.uint32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
