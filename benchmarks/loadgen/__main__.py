"""Every figure of the load generator on one machine: `python -m benchmarks.loadgen [--only PART ...]` (8 minutes).

A server whose latency is known exactly (`refserver.rs`, beside the repository in ../shared/bench, or under
CLIFFWATCH_SHARED; rustc builds it) runs on one core and logs the time of every read and write. Clients run on the
other, in turn: `rawclient.rs`, an epoll loop that only counts bytes and is what the machine allows;
`cliffwatch run`, master and workers as a user starts them; Locust's FastHttpUser as its documentation has it; and
`vllm bench serve` where `make tools-vllm` has brought it. Processor time is the kernel's count for the worker process.
Both sides stamp with CLOCK_MONOTONIC of one host and requests carry ids, so what a client says is compared with what
the server did, request by request. Each row goes to benchmarks/results/loadgen_ROW.json with bar, n, machine and peers;
docs/benchmarks.md shows them all.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.loadgen import arrivals, endurance, page, streams, throughput
from benchmarks.loadgen.result import Row
from benchmarks.loadgen.rig import Rig, build

PARTS: dict[str, Callable[[Rig], Iterator[Row]]] = {
    "ten": streams.ten_streams,
    "waves": streams.waves,
    "bulk": throughput.bulk,
    "short": throughput.short,
    "poisson": arrivals.poisson,
    "lag": endurance.send_lag,
    "many": endurance.many_streams,
    "master": endurance.master_cpu,
    "memory": endurance.memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--no-save", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="cliffwatch-bench-") as name:
        rig = build(Path(name))
        if isinstance(rig, str):
            print(f"skipped: {rig}")
            return
        for part in options.only:
            started_s = time.monotonic()
            for row in PARTS[part](rig):
                row.show()
                if not options.no_save:
                    row.save()
                missed += [] if row.reached else [row.name]
            print(f"  [{part}: {time.monotonic() - started_s:.0f} s]", flush=True)
    if not options.no_save:
        page.write()
    if missed:
        print(f"\nmissed a bar: {', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
