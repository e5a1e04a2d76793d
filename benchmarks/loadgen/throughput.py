"""How much one worker's core carries: chunks that come as fast as they can, and requests of a single token."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.loadgen.clients import PEERS, Load, cliffwatch, run_closed, run_floor
from benchmarks.loadgen.result import Figure, Peers, Row
from benchmarks.loadgen.rig import CLIENT_CORE, Rig
from benchmarks.loadgen.truth import window_ns


def bulk(rig: Rig) -> Iterator[Row]:
    """Chunks without a pause between them, each gap kept.

    The bar, 160,000 a second at three quarters of a core, is what the server's limit was on a slower machine. Where the
    server writes faster than a client can decode, the client's own core is the limit and the floor shows how far off.
    """
    load = Load(streams=16, requests=320, tokens=2000)
    with rig.server() as server:
        raw = run_floor(rig, server, load)
    with rig.server() as server:
        ours = run_closed(rig, server, load)
    said: Peers = {"floor": {"chunks_per_s": raw["events_per_s"], "core": raw["core"]}}
    with rig.server() as server:
        if (locust := PEERS["Locust"](rig, server, load)) is not None:
            said["Locust"] = {"chunks_per_s": round(locust.chunks / locust.seconds), "core": round(locust.core, 3)}
    rate, most = ours.chunks / ours.seconds, float(raw["events_per_s"] or 0)
    gaps = sum(len(some) for _, some in ours.gaps)
    chunk_us = ours.core * ours.seconds / ours.chunks * 1e6
    yield Row(
        "bulk",
        vars(load),
        [
            Figure("chunks", round(rate), "/s", ours.chunks),
            Figure("share of the server's limit", round(rate / most, 3), "", ours.chunks),
            Figure("share of a core", round(ours.core, 3), "", ours.chunks),
            Figure("core time a chunk", round(chunk_us, 2), "us", ours.chunks),
            Figure("chunks at 75 % of a core", round(0.75e6 / chunk_us), "/s", ours.chunks, 160_000, "at least"),
            Figure("gaps kept", gaps / (ours.chunks - load.requests), "of all", gaps, 1.0, "at least"),
        ],
        said,
    )


def short(rig: Rig) -> Iterator[Row]:
    """Answers of one token, as many as a worker's core carries; then two workers.

    Two workers and the server need three cores. On fewer, rates by the clock say nothing, so the second figure goes by
    processor time: what two workers serve for each second of their own time, against what one does.
    """
    load = Load(streams=32, requests=60_000, tokens=1)
    with rig.server() as server:
        raw = run_floor(rig, server, load)
    said: Peers = {"floor": {"requests_per_s": raw["requests_per_s"], "core": raw["core"]}}
    one = _rate(rig, load, workers=1, core=CLIENT_CORE)
    two = _rate(rig, load, workers=2, core=None)
    for name, requests in (("Locust", 20_000), ("vLLM", 3_000)):
        with rig.server() as server:
            seen = PEERS[name](rig, server, Load(load.streams, requests, 1))
            if seen is not None:
                said[name] = {"requests_per_s": round(seen.chunks / seen.seconds), "core": round(seen.core, 3)}
    n = load.requests
    yield Row(
        "short",
        vars(load),
        [
            Figure("requests, one worker, by the clock", round(one[0]), "/s", n),
            Figure("requests a second of a worker's core", round(one[1]), "/s", n, 12_000, "at least"),
            Figure("two workers over one, by core time", round(2 * two[1] / one[1], 3), "x", n, 1.8, "at least"),
            Figure("requests, two workers and server, 2 cores", round(two[0]), "/s", n),
        ],
        said,
    )


def _rate(rig: Rig, load: Load, *, workers: int, core: int | None) -> tuple[float, float]:
    """Requests a second by the clock, and for each second of the workers' processor time."""
    with rig.server() as server:
        arrivals = f"{{kind: concurrency, users: {load.streams}}}"
        amount = f"requests: {load.requests}"
        run = cliffwatch(rig, server, arrivals=arrivals, tokens=1, amount=amount, workers=workers, core=core)
        log = server.log().of(run.run_id)
    assert len(log) == load.requests
    window = window_ns(log)
    return load.requests / (window[1] - window[0]) * 1e9, load.requests / run.watch.used_s(window, "worker")
