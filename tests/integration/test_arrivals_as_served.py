"""The arrivals as a server sees them, by its own clock: rate, variation, dispersion, whatever the number of workers.

The server answers at once, so that nothing but the load generator shapes what it sees.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from cliffwatch.config import check_config
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload
from tests.loadgen.scripted import END, STREAM_HEAD, answer_probe, event, serving, usage, whole
from tests.servers.load import run

pytestmark = pytest.mark.integration

WORKLOAD = {
    "name": "arrivals",
    "seed": 5,
    "input_tokens": {"kind": "fixed", "value": 32},
    "output_tokens": {"kind": "fixed", "value": 1},
    "batch": {"sizes": [1]},
    "endpoint": "completions",
}
ANSWER = STREAM_HEAD + event(finish="length") + usage(32, 1) + END


@contextmanager
def clocked() -> Iterator[tuple[str, list[int]]]:
    """A server that notes when each request was whole (monotonic ns) and answers one token at once."""
    seen: list[int] = []

    def behave(sock: socket.socket, request: bytes) -> None:
        if request.startswith(b"POST /v1/completions"):
            seen.append(time.monotonic_ns())
            sock.sendall(ANSWER)
        elif not answer_probe(sock, request):
            sock.sendall(whole("404 Not Found", b"{}"))

    with serving(behave) as served:
        yield f"http://127.0.0.1:{served.port}", seen


def served(arrivals: dict[str, object], requests: int, folder: Path, workers: int) -> list[float]:
    """Seconds, from the first, at which the server had each request; the run is complete and nothing was late."""
    with clocked() as (url, seen):
        result = run(
            {**WORKLOAD, "arrivals": arrivals, "requests": requests},
            url,
            folder,
            "--workers",
            str(workers),
            within_s=60,
        )
        accounting = result.manifest.accounting
        assert accounting is not None, result.output
        assert (accounting.issued, accounting.ok) == (requests, requests), result.output
        times = sorted(seen)[-requests:]
    assert len(times) == requests
    return [(at - times[0]) / 1e9 for at in times]


def test_a_constant_rate_does_not_drift(tmp_path: Path) -> None:
    """Gaps that are slept one after the other lose time at each: 183 a second were once seen where 200 were asked."""
    times = served({"kind": "constant", "rate": 200}, 2000, tmp_path, workers=1)
    assert (len(times) - 1) / times[-1] == pytest.approx(200, rel=0.01)
    # a line through the arrivals: no part of the run is slower than another
    half = (times[1000] - times[0]) / 1000, (times[1999] - times[999]) / 1000
    assert half == (pytest.approx(1 / 200, rel=0.01), pytest.approx(1 / 200, rel=0.01))


@pytest.mark.parametrize("workers", [1, 4])
def test_poisson_is_poisson_however_many_workers_send_it(tmp_path: Path, workers: int) -> None:
    """1,200 gaps. Of an exponential the CV of so many has a standard error of 2.9 % (1/sqrt(n)), the dispersion of
    counts in 30 bins of 40 arrivals one of 26 % (sqrt(2/bins)), the correlation of neighbours one of 2.9 %. Bounds are
    four of each: the plan's own chance, which the seed fixes, lies within, and several workers that replay one stream
    (dispersion as many times one) lie far outside.
    """
    times = served({"kind": "poisson", "rate": 100}, 1200, tmp_path, workers)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    mean = statistics.fmean(gaps)
    assert 1 / mean == pytest.approx(100, rel=0.115)
    assert statistics.stdev(gaps) / mean == pytest.approx(1, abs=0.115)
    width = 40 * mean
    counts = [0] * int(times[-1] / width)
    for at in times:
        if at < len(counts) * width:
            counts[int(at / width)] += 1
    assert statistics.variance(counts) / statistics.fmean(counts) == pytest.approx(1, abs=1.03)
    assert abs(statistics.correlation(gaps[:-1], gaps[1:])) < 0.115


def test_the_server_sees_the_plan_itself(tmp_path: Path) -> None:
    """Each request arrives near its planned instant: the seen times are the plan's, moved by one constant."""
    arrivals = {"kind": "gamma", "rate": 100, "burstiness": 0.5}
    times = served(arrivals, 600, tmp_path, workers=2)
    workload = check_config({**WORKLOAD, "arrivals": arrivals, "requests": 600}, Workload, source="test")
    planned = [plan.intended_ns / 1e9 for plan in schedule(workload)]
    late = sorted(seen - (at - planned[0]) for seen, at in zip(times, planned, strict=True))
    assert late[len(late) * 9 // 10] - late[len(late) // 10] < 0.02
