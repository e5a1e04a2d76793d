"""Paced streams: how wrong a client's times are, and what a chunk costs it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.loadgen.clients import PEERS, Load, Seen, run_closed, run_floor
from benchmarks.loadgen.result import Figure, Row
from benchmarks.loadgen.rig import Rig, Server
from benchmarks.loadgen.truth import Numbers

Said = dict[str, float | int | None]


def ten_streams(rig: Rig) -> Iterator[Row]:
    """10 streams, TTFT 50 ms, ITL 10 ms."""
    load = Load(streams=10, requests=200, tokens=50)
    row, ours, _ = _round(rig, "streams_10", load, ttft_ms=50, itl_ms=10)
    row.figures = [
        _figure("TTFT error p50", ours["ttft_error_p50_ms"], "ms", load.requests, 0.4),
        _figure("TTFT error p99", ours["ttft_error_p99_ms"], "ms", load.requests, 2.0),
        _figure("ITL error p99 (a request)", ours["itl_error_p99_ms"], "ms", load.requests, 0.5),
        _figure("gap error p99 (a chunk)", ours["gap_error_p99_ms"], "ms", load.requests * (load.tokens - 1), None),
        _figure("share of a core", ours["core"], "", load.requests, 0.05),
    ]
    yield row


def waves(rig: Rig) -> Iterator[Row]:
    """200 and 500 streams that start together, TTFT 200 ms, ITL 20 ms; 500 of them are 25,000 chunks a second."""
    for streams, bar_ms in ((200, 10.0), (500, 30.0)):
        load = Load(streams, requests=5 * streams, tokens=50)
        row, ours, floor = _round(rig, f"streams_{streams}", load, ttft_ms=200, itl_ms=20)
        above = (ours["ttft_p99_ms"] or 0) - (floor["ttft_p99_ms"] or 0)
        chunks = int(ours["chunks"] or 0)
        row.figures = [
            _figure("TTFT p99 above the floor", above, "ms", load.requests, bar_ms),
            _figure("TTFT error p99", ours["ttft_error_p99_ms"], "ms", load.requests, None),
            _figure("ITL error p99 (a request)", ours["itl_error_p99_ms"], "ms", load.requests, 2.0),
            _figure("gap error p99 (a chunk)", ours["gap_error_p99_ms"], "ms", chunks - load.requests, None),
            _figure("core time a chunk", ours["us_a_chunk"], "us", chunks, 15.0),
            Figure("gaps kept", float(ours["gaps_kept"] or 0), "of all", chunks - load.requests, 1.0, "at least"),
        ]
        yield row


def _figure(name: str, value: float | None, unit: str, n: int, bar: float | None) -> Figure:
    assert value is not None
    return Figure(name, round(value, 4), unit, n, bar)


def _round(rig: Rig, name: str, load: Load, *, ttft_ms: float, itl_ms: float) -> tuple[Row, Said, Said]:
    """One client after the other on a server each; the row without figures, what we said, and the floor."""
    options = ("--ttft-ms", ttft_ms, "--itl-ms", itl_ms)
    said: dict[str, Said] = {}
    with rig.server(*options) as server:
        raw = run_floor(rig, server, load)
    said["floor"] = {
        "ttft_p50_ms": raw["ttft_p50"],
        "ttft_p99_ms": raw["ttft_p99"],
        "ttft_error_p50_ms": (raw["ttft_p50"] or 0) - ttft_ms,
        "ttft_error_p99_ms": (raw["ttft_p99"] or 0) - ttft_ms,
        "core": raw["core"],
        "us_a_chunk": (raw["core"] or 0) * float(raw["seconds"] or 0) / int(raw["events"] or 1) * 1e6,
    }
    for client, run in {"Cliffwatch": run_closed, **PEERS}.items():
        with rig.server(*options, chunks=True) as server:
            seen = run(rig, server, load)
            if seen is not None:
                said[client] = describe(seen, server)
    ours = said.pop("Cliffwatch")
    settings = {"ttft_ms": ttft_ms, "itl_ms": itl_ms, **vars(load)}
    return Row(name, settings, peers=said), ours, said["floor"]


def describe(seen: Seen, server: Server) -> Said:
    """A client's errors against what the server did; times in ms. Where gaps were merged, their errors are unknown."""
    true_gaps = server.log().gaps_ms
    ttft = np.abs(seen.ttft_ms - [r.ttft_ms for r in seen.true])
    itl = np.abs(seen.itl_ms - [r.itl_ms for r in seen.true])
    kept = [np.abs(gaps - true_gaps[seq]) for seq, gaps in seen.gaps if len(gaps) == len(true_gaps[seq])]
    true_count = sum(len(true_gaps[seq]) for seq, _ in seen.gaps)
    return {
        "ttft_p50_ms": _quantile(seen.ttft_ms, 0.5),
        "ttft_p99_ms": _quantile(seen.ttft_ms, 0.99),
        "ttft_error_p50_ms": _quantile(ttft, 0.5),
        "ttft_error_p99_ms": _quantile(ttft, 0.99),
        "itl_error_p99_ms": _quantile(itl, 0.99),
        "gap_error_p99_ms": _quantile(np.concatenate(kept), 0.99) if kept else None,
        "gaps_kept": sum(len(gaps) for _, gaps in seen.gaps) / max(1, true_count),
        "chunks": seen.chunks,
        "core": round(seen.core, 4),
        "us_a_chunk": round(seen.core * seen.seconds / max(1, seen.chunks) * 1e6, 2),
    }


def _quantile(values: Numbers, p: float) -> float:
    return round(float(np.quantile(values, p)), 4)
