"""Memory and pace of reading a large trace: `.venv/bin/python -m benchmarks.trace_memory` (aim: 500 MB for 10 GB).

Writes traces of two sizes, a CSV of Azure's columns and JSON lines of Mooncake's with block ids, reads each in a
process of its own as a worker would (planned requests, one after the other), and takes that process's largest resident
size. That the larger file takes no more than the smaller one is what makes the figure hold at 10 GB.
Writes `benchmarks/results/trace_memory.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "trace_memory.json"
AIM_MB = 500
READER = """
import resource, sys, time
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import load_workload
begin = time.perf_counter()
count = sum(1 for _ in schedule(load_workload(sys.argv[1])))
print(count, time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def azure(rng: np.random.Generator) -> Iterator[str]:
    yield "TIMESTAMP,ContextTokens,GeneratedTokens"
    for index in range(1 << 62):
        seconds, rest = divmod(index * 7, 1000)
        minutes, hours = seconds // 60 % 60, seconds // 3600 % 24
        day = 1 + seconds // 86_400
        at = f"2023-11-{day:02d} {hours:02d}:{minutes:02d}:{seconds % 60:02d}.{rest:03d}0000"
        yield f"{at},{rng.integers(1, 8000)},{rng.integers(1, 1000)}"


def mooncake(rng: np.random.Generator) -> Iterator[str]:
    fresh = 0
    for index in range(1 << 62):
        blocks = int(rng.integers(1, 50))
        ids = [*range(min(blocks, 4)), *range(fresh, fresh + max(0, blocks - 4))]
        fresh += blocks
        row = {"timestamp": index * 7, "input_length": 512 * blocks, "output_length": 100, "hash_ids": ids}
        yield json.dumps(row)


def write(path: Path, lines: Iterator[str], megabytes: int) -> int:
    """Lines until the file has its size; how many there are."""
    written = count = 0
    with path.open("w", encoding="utf-8") as stream:
        for line in lines:
            if written >= megabytes << 20:
                break
            written += stream.write(line + "\n")
            count += 1
    return count


def measure(folder: Path, make: Callable[[np.random.Generator], Iterator[str]], megabytes: int) -> dict[str, Any]:
    trace, workload = folder / "trace", folder / "workload.yaml"
    write(trace, make(np.random.default_rng(1)), megabytes)
    workload.write_text(json.dumps({"arrivals": {"kind": "trace", "file": "trace"}}))
    told = subprocess.run([sys.executable, "-c", READER, str(workload)], capture_output=True, text=True, check=True)
    count, seconds, kilobytes = told.stdout.split()
    trace.unlink()
    return {
        "format": make.__name__,
        "file_mb": megabytes,
        "requests": int(count),
        "requests_per_s": round(int(count) / float(seconds)),
        "largest_resident_mb": round(int(kilobytes) / 1024, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="*", default=[20, 150], help="sizes of the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), make, size) for make in (azure, mooncake) for size in options.megabytes]
    figures = {"measured": time.strftime("%Y-%m-%d"), "aim_mb": AIM_MB, "rows": rows}
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
