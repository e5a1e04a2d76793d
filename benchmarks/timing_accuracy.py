"""How wrong the client's times are: `.venv/bin/python benchmarks/timing_accuracy.py [--streams N] [--ttft-ms X] ...`

A server whose every write is logged (`refserver.rs`, beside the repository in ../shared/bench; rustc builds it) runs
on one core, `cliffwatch run` with one worker on another. Each request's times are joined with the server's log by
X-Request-Id: both clocks are CLOCK_MONOTONIC of one host. The error is what the client says minus what the server did.
`rawclient.rs`, an epoll loop that only counts bytes, is the floor: what this host allows in the same minutes.

Bar: TTFT error p50 at most 1 ms, p99 at most 5 ms (10 streams, TTFT 50 ms, ITL 10 ms).
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from cliffwatch.cli.processes import die_with_parent, end, free_port, wait_for
from cliffwatch.records.reader import RunReader

ROOT = Path(__file__).resolve().parent.parent
SOURCES = Path(os.environ.get("CLIFFWATCH_SHARED", ROOT.parent / "shared")) / "bench"
RESULT = Path(__file__).with_name("results") / "timing_accuracy.json"
BAR_P50_MS, BAR_P99_MS = 1.0, 5.0

WORKLOAD = """\
name: timing-accuracy
requests: {requests}
arrivals: {{kind: concurrency, users: {streams}}}
input_tokens: {{kind: fixed, value: 64}}
output_tokens: {{kind: fixed, value: {tokens}}}
batch: {{sizes: [1]}}
endpoint: completions
cold_start: {{requests: {streams}}}
"""


@dataclass(frozen=True)
class Errors:
    """Errors in milliseconds over `n` requests (TTFT, ITL of a request) or gaps (single chunk gaps)."""

    n: int
    ttft_p50: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float
    gap_p99: float | None


def build(folder: Path, name: str) -> Path:
    """Compile one of the Rust sources."""
    program = folder / name
    subprocess.run(["rustc", "-O", "-o", str(program), str(SOURCES / f"{name}.rs")], check=True, capture_output=True)
    return program


def pinned(core: int, *command: str | Path) -> list[str]:
    return ["taskset", "-c", str(core), *map(str, command)]


@contextlib.contextmanager
def server(program: Path, folder: Path, options: argparse.Namespace) -> Iterator[int]:
    """refserver on core 0 and a free port; its logs are complete when the block has ended."""
    port = free_port(0)
    command = pinned(
        0, program, "--port", str(port), "--ttft-ms", str(options.ttft_ms), "--itl-ms", str(options.itl_ms)
    )
    command += ["--log", str(folder / "requests.csv"), "--chunk-log", str(folder / "chunks.bin")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
    try:
        time.sleep(0.3)
        yield port
        time.sleep(0.5)  # it flushes its logs five times a second
    finally:
        end(process)


def run_client(folder: Path, port: int, options: argparse.Namespace) -> Path:
    """One `cliffwatch run` on core 1; the run folder."""
    workload, out = folder / "workload.yaml", folder / "run"
    fields = {"requests": options.requests, "streams": options.streams, "tokens": options.tokens}
    workload.write_text(WORKLOAD.format(**fields))
    command = pinned(1, sys.executable, "-m", "cliffwatch", "run", workload, "--no-report")
    command += ["--target", f"http://127.0.0.1:{port}", "--out", str(out), "--model", "ref"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"cliffwatch run ended with {done.returncode}: {done.stderr}")
    return out


def truth(folder: Path) -> tuple[dict[str, tuple[float, float]], dict[str, np.ndarray]]:
    """By X-Request-Id: (TTFT, ITL) in ms as written by the server, and the gaps between its writes in ms."""
    ids, times = {}, {}
    with (folder / "requests.csv").open() as stream:
        for row in csv.DictReader(stream):
            if not row["x_request_id"]:  # a probe, or the floor's client
                continue
            read, first, last = (int(row[key]) for key in ("read_ns", "first_ns", "last_ns"))
            ids[int(row["seq"])] = row["x_request_id"]
            times[row["x_request_id"]] = ((first - read) / 1e6, (last - first) / 1e6 / (int(row["tokens"]) - 1))
    gaps = {}
    data = (folder / "chunks.bin").read_bytes()
    at = 0
    while at < len(data):
        seq, steps, _ = struct.unpack_from("<QII", data, at)
        stamps = np.frombuffer(data, "<u8", steps, at + 16).astype(np.int64)
        if seq in ids:
            gaps[ids[seq]] = np.diff(stamps) / 1e6
        at += 16 + 8 * steps
    return times, gaps


def measure(folder: Path, run_dir: Path) -> Errors:
    """What the client said minus what the server did, over the warm requests."""
    times, gaps = truth(folder)
    reader = RunReader(run_dir)
    prefix = reader.manifest.run_id
    with reader.connect() as connection:
        rows = connection.execute(
            "SELECT request_id, ttft_s, itl_s, chunk_gaps_us FROM requests WHERE phase = 'measured' AND outcome = 'ok'"
        ).fetchall()
    ttft, itl, gap = [], [], []
    for request_id, ttft_s, itl_s, gaps_us in rows:
        true_ttft, true_itl = times[f"{prefix}-{request_id}"]
        ttft.append(abs(ttft_s * 1e3 - true_ttft))
        itl.append(abs(itl_s * 1e3 - true_itl))
        true_gaps = gaps[f"{prefix}-{request_id}"]
        if len(gaps_us) == len(true_gaps):
            gap.append(np.abs(np.array(gaps_us) / 1e3 - true_gaps))
    return errors(ttft, itl, float(np.quantile(np.concatenate(gap), 0.99)) if gap else None)


def errors(ttft: list[float], itl: list[float], gap_p99: float | None) -> Errors:
    t50, t99 = np.quantile(ttft, [0.5, 0.99])
    i50, i99 = np.quantile(itl, [0.5, 0.99])
    return Errors(len(ttft), *(round(float(value), 4) for value in (t50, t99, i50, i99)), gap_p99 and round(gap_p99, 4))


def floor(client: Path, port: int, options: argparse.Namespace) -> dict[str, float]:
    """rawclient's own percentiles (ms) against the schedule, in the same minutes."""
    command = pinned(1, client, str(port), str(options.streams), str(options.requests), str(options.tokens), "stream")
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout)
    return {
        "ttft_p50": round(said["ttft_p50"] - options.ttft_ms, 4),
        "ttft_p99": round(said["ttft_p99"] - options.ttft_ms, 4),
        "gap_p99": round(said["itl_p99"] - options.itl_ms, 4),
    }


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--ttft-ms", type=float, default=50)
    parser.add_argument("--itl-ms", type=float, default=10)
    parser.add_argument("--tokens", type=int, default=50)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/timing_accuracy.json")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if not SOURCES.is_dir() or shutil.which("rustc") is None or shutil.which("taskset") is None:
        print(f"skipped: needs {SOURCES}, rustc and taskset")
        return
    with tempfile.TemporaryDirectory(prefix="cliffwatch-bench-") as name:
        folder = Path(name)
        refserver, rawclient = build(folder, "refserver"), build(folder, "rawclient")
        with server(refserver, folder, options) as port:
            wait_for(lambda: (folder / "requests.csv").exists(), timeout_s=5)
            run_dir = run_client(folder, port, options)
            raw = floor(rawclient, port, options)
        found = measure(folder, run_dir)
    passed = found.ttft_p50 <= BAR_P50_MS and found.ttft_p99 <= BAR_P99_MS
    settings = {key: value for key, value in vars(options).items() if key != "save"}
    result = {"settings": settings, "errors_ms": asdict(found), "floor_ms": raw, "load_average": os.getloadavg()[0]}
    result |= {"goal_ttft_ms": {"p50": BAR_P50_MS, "p99": BAR_P99_MS}, "passed": passed}
    print(json.dumps(result, indent=2))
    if options.save:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
