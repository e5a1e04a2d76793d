"""A heatmap request on 1,000,000 rows: `.venv/bin/python -m benchmarks.heatmap` (aim: at most 300 ms on one core).

Makes a run folder of synthetic rows, then asks for grids as the web page does, pinned to one core with one DuckDB
thread: the closed run read from its Parquet shards, and the same rows as a live run copied to memory; and for what the
page shows beside it: cliffs, knees, use of the hardware. The peer is the
same grid by pyarrow and numpy (read the columns, sort by cell, one quantile a cell); its cells must be equal.
Writes `benchmarks/results/heatmap.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cliffwatch.records.manifest import RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.roofline.hardware import load_hardware
from cliffwatch.roofline.model import load_model
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.findings import findings
from cliffwatch.surface.grid import Grid, Question, heatmap
from cliffwatch.surface.knees import knees
from cliffwatch.surface.measured import read_cells
from cliffwatch.surface.use import use
from tests.records.synthetic import make_run

RESULTS = Path(__file__).parent / "results" / "heatmap.json"
AIM_MS = 300
ON = Deployment(hardware=load_hardware("H200"), model=load_model("llama-3-8b"))
QUESTIONS: dict[str, dict[str, Any]] = {
    "ttft p95": {"metric": "ttft_s", "statistic": "p95"},
    "user e2e p99": {"metric": "e2e_user_s", "statistic": "p99"},
    "itl p50": {"metric": "itl_s", "statistic": "p50"},
    "tpot p95": {"metric": "tpot_s", "statistic": "p95"},
    "ttft attainment": {"metric": "ttft_s", "statistic": "attainment", "threshold": 0.1},
    "longest gap p95": {"metric": "max_gap_s", "statistic": "p95"},
    "ttft p95, rate x concurrency": {"metric": "ttft_s", "statistic": "p95", "rows": "rate", "columns": "concurrency"},
    "e2e p95, time x concurrency": {"metric": "e2e_s", "statistic": "p95", "rows": "time", "columns": "concurrency"},
}


def milliseconds(ask: Callable[[], object], rounds: int) -> dict[str, float]:
    """The first call, and the median and worst of the ones after it."""
    took = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        ask()
        took.append((time.perf_counter() - start) * 1e3)
    first, *rest = took
    return {"first": round(first, 1), "median": round(statistics.median(rest), 1), "worst": round(max(rest), 1)}


def peer(run_dir: Path, row_edges: Sequence[float]) -> dict[tuple[int, int], tuple[float, int]]:
    """TTFT p95 by (row between these edges, batch), with pyarrow and numpy: {cell: (value, n)}."""
    columns = ["phase", "outcome", "input_tokens", "batch", "first_token_ns", "sent_ns"]
    table = pq.read_table(run_dir / "shards", columns=columns, use_threads=False)
    table = table.filter(pc.and_(pc.equal(table["phase"], "measured"), pc.equal(table["outcome"], "ok")))
    tokens, batch = table["input_tokens"].to_numpy(), table["batch"].to_numpy()
    ttft = (table["first_token_ns"].to_numpy() - table["sent_ns"].to_numpy()) / 1e9
    rows = np.searchsorted(row_edges[1:-1], tokens, side="right")  # the last row holds its upper edge as well
    cell = rows * 1000 + batch
    order = np.argsort(cell, kind="stable")
    cells, starts = np.unique(cell[order], return_index=True)
    samples = np.split(ttft[order], starts[1:])
    return {
        (int(key) // 1000, int(key) % 1000): (float(np.quantile(sample, 0.95)), sample.size)
        for key, sample in zip(cells, samples, strict=True)
    }


def agree(grid: Grid, expected: dict[tuple[int, int], tuple[float, int]]) -> int:
    """Cells compared; raises AssertionError where one differs."""
    assert grid.n == sum(n for _, n in expected.values())
    compared = 0
    for r, row in enumerate(grid.cells):
        for c, cell in enumerate(row):
            value, n = expected.get((r, int(grid.columns.keys[c])), (None, 0))
            assert cell.n == n, (r, c, cell, n)
            if cell.value is not None:
                assert value is not None
                assert abs(cell.value - value) <= 1e-9 * value, (r, c, cell, value)
                compared += 1
    return compared


def single_threaded(run_dir: Path) -> RunReader:
    reader = RunReader(run_dir)
    with reader.connect() as connection:
        connection.execute("SET threads = 1")
    return reader


def measure(rows: int, rounds: int, folder: Path) -> dict[str, Any]:
    closed = make_run(folder / "closed", rows)
    live = make_run(folder / "live", rows, state=RunState.RUNNING, parts=50)
    reader, live_reader = single_threaded(closed.dir), single_threaded(live.dir)
    asked = {
        name: {
            "closed": milliseconds(lambda question=question: heatmap(reader, **question), rounds),
            "live": milliseconds(lambda question=question: heatmap(live_reader, **question), rounds),
        }
        for name, question in QUESTIONS.items()
    }
    beside = {
        "cliffs of ttft p50": milliseconds(lambda: findings(reader, Question("ttft_s", "p50"), "TTFT"), rounds),
        "knees of ttft": milliseconds(lambda: knees(reader, "ttft_s"), rounds),
        "use of decode": milliseconds(lambda: use(ON, read_cells(reader, "itl_s", cached=False), "decode"), rounds),
    }
    grid = heatmap(reader, "ttft_s", "p95")
    compared = agree(grid, peer(closed.dir, grid.rows.edges))
    peer_ms = milliseconds(lambda: peer(closed.dir, grid.rows.edges), rounds)
    fastest = asked["ttft p95"]["closed"]["median"]
    return {
        "milliseconds": asked,
        "milliseconds_beside_the_heatmap": beside,
        "peer_pyarrow_numpy_ttft_p95": peer_ms,
        "peer_over_ours": round(peer_ms["median"] / fastest, 2),
        "cells_equal_to_peer": compared,
        "shard_bytes": sum(path.stat().st_size for path in (closed.dir / "shards").iterdir()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="cliffwatch-heatmap-") as folder:
        result = measure(asked.rows, asked.rounds, Path(folder))
    result = {
        "command": f"python -m benchmarks.heatmap --rows {asked.rows} --rounds {asked.rounds}",
        "rows": asked.rows,
        "aim_ms": AIM_MS,
        "machine": {"cpus": os.cpu_count(), "used": 1, "arch": platform.machine(), "python": platform.python_version()},
        "versions": {"duckdb": duckdb.__version__, "pyarrow": pa.__version__, "numpy": np.__version__},
        **result,
    }
    asked.out.parent.mkdir(exist_ok=True)
    asked.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
