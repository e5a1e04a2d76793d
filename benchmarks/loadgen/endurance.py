"""Send lag, 10,000 streams at once, the master's work at two rates, a worker's memory over a million requests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.loadgen.clients import Run, cliffwatch
from benchmarks.loadgen.result import Figure, Row
from benchmarks.loadgen.rig import Rig
from benchmarks.loadgen.truth import Numbers, most_in_flight, window_ns


def send_lag(rig: Rig) -> Iterator[Row]:
    """Open loop, Poisson 500/s, answers of 8 tokens."""
    rate, requests = 500, 10_000
    with rig.server("--ttft-ms", 50, "--itl-ms", 10) as server:
        arrivals = f"{{kind: poisson, rate: {rate}}}"
        run = cliffwatch(rig, server, arrivals=arrivals, tokens=8, amount=f"requests: {requests}")
        window = window_ns(server.log().of(run.run_id))
    lag = _lag_ms(run)
    core = run.watch.used_s(window, "worker") / (window[1] - window[0]) * 1e9
    yield Row(
        "send_lag",
        {"rate": rate, "requests": requests, "tokens": 8},
        [
            Figure("send lag p50", round(float(np.quantile(lag, 0.5)), 4), "ms", len(lag), 0.3),
            Figure("send lag p99", round(float(np.quantile(lag, 0.99)), 4), "ms", len(lag), 2.0),
            Figure("share of a core", round(core, 3), "", len(lag)),
        ],
    )


def many_streams(rig: Rig) -> Iterator[Row]:
    """10,000 streams open at once on one destination: 400 new ones a second, each 26 s long, 10,400 chunks a second."""
    rate, requests, tokens = 400, 14_000, 26
    with rig.server("--ttft-ms", 1000, "--itl-ms", 1000) as server:
        arrivals = f"{{kind: poisson, rate: {rate}}}"
        run = cliffwatch(rig, server, arrivals=arrivals, tokens=tokens, amount=f"requests: {requests}")
        log = server.log().of(run.run_id)
    window, lag = window_ns(log), _lag_ms(run)
    core = run.watch.used_s(window, "worker") / (window[1] - window[0]) * 1e9
    yield Row(
        "many_streams",
        {"rate": rate, "requests": requests, "tokens": tokens, "itl_ms": 1000},
        [
            Figure("streams in flight at once", most_in_flight(log), "", requests, 10_000, "at least"),
            Figure("complete", len(log) / requests, "of all", requests, 1.0, "at least"),
            Figure("send lag p99", round(float(np.quantile(lag, 0.99)), 3), "ms", len(lag), 5.0),
            Figure("share of a core", round(core, 3), "", requests),
        ],
    )


def master_cpu(rig: Rig) -> Iterator[Row]:
    """The master's share of a core while two workers send 100 and 5,000 requests a second."""
    shares = {}
    for rate in (100, 5_000):
        with rig.server() as server:
            arrivals = f"{{kind: constant, rate: {rate}}}"
            run = cliffwatch(rig, server, arrivals=arrivals, tokens=1, amount="duration: 12s", workers=2, core=None)
            window = window_ns(server.log().of(run.run_id))
        shares[rate] = run.watch.used_s(window, "root") / (window[1] - window[0]) * 1e9
    yield Row(
        "master_cpu",
        {"workers": 2, "seconds": 12},
        [
            Figure("share of a core at 100/s", round(shares[100], 4), "", 1_200),
            Figure("share of a core at 5,000/s", round(shares[5_000], 4), "", 60_000),
            Figure("more at 5,000/s", round(shares[5_000] - shares[100], 4), "of a core", 60_000, 0.01),
        ],
    )


def memory(rig: Rig) -> Iterator[Row]:
    """Resident memory of a worker after 100,000 and after 1,000,000 requests of one run."""
    requests, early = 1_000_000, 100_000
    with rig.server() as server:
        run = cliffwatch(
            rig, server, arrivals="{kind: concurrency, users: 32}", tokens=1, amount=f"requests: {requests}",
            timeout_s=900,
        )  # fmt: skip
        read_ns = sorted(request.read_ns for request in server.log().of(run.run_id).values())
    (worker,) = run.watch.tracks()["worker"]
    # the highest of the ten seconds before: between two parts memory holds the rows of the next one
    first, last = (_highest(worker.at_ns, worker.rss_mb, read_ns[count - 1]) for count in (early, requests))
    yield Row(
        "memory",
        {"requests": requests},
        [
            Figure(f"resident memory after {early:,d}", round(first, 1), "MB", early),
            Figure(f"resident memory after {requests:,d}", round(last, 1), "MB", requests),
            Figure("growth", round((last - first) / first, 4), "", requests, 0.05),
        ],
    )


def _highest(at_ns: list[int], rss_mb: list[float], until_ns: int, seconds: float = 10.0) -> float:
    return max(rss for at, rss in zip(at_ns, rss_mb, strict=True) if until_ns - seconds * 1e9 <= at <= until_ns)


def _lag_ms(run: Run) -> Numbers:
    """Sent minus intended of every request, its own connection set-up apart."""
    rows = run.rows("(sent_ns - intended_ns - coalesce(connect_ns, 0)) / 1e6")
    return np.array([float(str(lag)) for (lag,) in rows])
