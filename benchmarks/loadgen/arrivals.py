"""Whether the merged stream of several workers is Poisson, from when the server had read each request.

The shape of a Poisson stream does not depend on its rate, but a client's jitter weighs more the faster it is: 1,000/s
in bins of 5 ms is the harder form of 50/s in bins of 100 ms, and gives 12,000 arrivals in 12 s. An exact Poisson stream
has these standard errors: CV 1/sqrt(n), dispersion sqrt(2/bins), lag-1 correlation 1/sqrt(n); each bar is three of them
at least. The planned stream's own figures stand beside: what differs is the client's doing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.loadgen.clients import Run, cliffwatch
from benchmarks.loadgen.result import Figure, Row
from benchmarks.loadgen.rig import Rig
from benchmarks.loadgen.truth import Numbers
from cliffwatch.stats.sketch import Sketch

RATE, REQUESTS = 1_000, 12_000
BIN_S = 5 / RATE  # as 100 ms are to 50/s


def poisson(rig: Rig) -> Iterator[Row]:
    """The merged stream of 1, 2 and 4 workers; and percentiles merged from 4 workers' sketches."""
    row = Row("poisson", {"rate": RATE, "requests": REQUESTS, "bin_ms": BIN_S * 1e3, "as": "50/s in bins of 100 ms"})
    errors = {"cv": 1 / np.sqrt(REQUESTS), "dispersion": np.sqrt(2 / (REQUESTS / RATE / BIN_S)), "lag1": REQUESTS**-0.5}
    row.peers["standard error"] = {name: round(float(value), 4) for name, value in errors.items()}
    for workers in (1, 2, 4):
        with rig.server("--ttft-ms", 1) as server:
            amount, arrivals = f"requests: {REQUESTS}", f"{{kind: poisson, rate: {RATE}}}"
            run = cliffwatch(rig, server, arrivals=arrivals, tokens=1, amount=amount, workers=workers)
            log = server.log().of(run.run_id)
        planned = np.sort(np.array([at for (at,) in run.rows("intended_ns", "true")], np.float64)) / 1e9
        served = np.sort([request.read_ns for request in log.values()]) / 1e9
        row.peers[f"as planned, {workers} workers"] = dict(
            zip(("cv", "dispersion", "lag1"), shape(planned), strict=True)
        )
        cv, dispersion, lag1 = shape(served)
        n = len(served)
        row.figures += [
            Figure(f"CV - 1, {workers} workers", round(abs(cv - 1), 4), "", n, 0.03),
            Figure(f"dispersion - 1, {workers} workers", round(abs(dispersion - 1), 4), "", n, 0.1),
            Figure(f"lag-1 correlation, {workers} workers", round(abs(lag1), 4), "", n, 0.06),
        ]
    yield row
    yield merged_percentiles(run)


def shape(at_s: Numbers) -> tuple[float, float, float]:
    """Of sorted arrivals: CV of the gaps, variance over mean of counts a bin, correlation of neighbouring gaps."""
    gaps = np.diff(at_s)
    counts = np.histogram(at_s, np.arange(at_s[0], at_s[-1], BIN_S))[0]
    lag1 = np.corrcoef(gaps[:-1], gaps[1:])[0, 1]
    return round(gaps.std() / gaps.mean(), 4), round(counts.var() / counts.mean(), 4), round(float(lag1), 4)


def merged_percentiles(run: Run) -> Row:
    """Each worker's values in a sketch of its own, the sketches added up, against all values together."""
    row = Row("merged_percentiles", {"workers": 4, "figures": "TTFT, E2E from the intended time"})
    for figure in ("ttft_user_s", "e2e_user_s"):
        of_worker: dict[object, Sketch] = {}
        values = []
        for worker, value in run.rows(f"worker, {figure}"):
            of_worker.setdefault(worker, Sketch()).add(float(str(value)))
            values.append(float(str(value)))
        whole = Sketch()
        for sketch in of_worker.values():
            whole = whole.merge(Sketch.from_dict(sketch.to_dict()))
        for p in (0.5, 0.95, 0.99):
            exact, merged = float(np.quantile(values, p)), whole.percentile(p).value
            assert merged is not None
            name = f"{figure} p{p * 100:g}, error of the merged"
            row.figures.append(Figure(name, round(abs(merged / exact - 1) * 100, 3), "%", len(values), 1.0))
    return row
