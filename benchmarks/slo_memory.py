"""The service's memory over an hour: `.venv/bin/python -m benchmarks.slo_memory --minutes 60` (aim: it stays flat).

`cliffwatch serve` watches 50 SLOs on a real Prometheus. Ten requests a second go round all its routes, with parameters
that keep changing, and Alertmanager's notifications of events that nobody told before, so that every cache fills and
turns over; the engine works meanwhile. Resident memory is read every 10 s. The first quarter is left out (caches
fill); over the rest, Theil and Sen's slope of medians of two minutes, with its 95 % interval. Flat is: at its lower
end the slope, over the hour, is below 1 % of the memory. Writes `benchmarks/results/slo_memory.json`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import httpx2
from scipy import stats

from benchmarks._saved import conclude
from benchmarks._watched import RUN_ID, SLOS, memory_mb, watching_service
from tests.servers.client import complete
from tests.servers.processes import Server

EVERY_S = 10.0
BLOCK = 12  # samples a median: two minutes
WARM_UP_SHARE = 0.25
PAUSE_S = 0.1
MIN_MINUTES = 12.0
MAX_GROWTH = 0.01  # of the memory, an hour
_NUMBER = re.compile(r"(?<=[-/])[0-9]+")
METRICS = ("ttft_user_s", "e2e_user_s", "tpot_s")


def questions() -> Iterator[tuple[str, dict[str, object] | None]]:
    """Path and query of one request after the other, or path and body of a notification; without end."""
    for turn in itertools.count():
        slo, metric, bins = f"slo-{turn % SLOS:02}", METRICS[turn % len(METRICS)], 1 + turn % 499
        run = f"/v1/runs/{RUN_ID}"
        yield "/v1/slos", None
        yield f"/v1/slos/{slo}", None
        yield f"/v1/slos/{slo}/history?span_s={3600 + turn}&points={2 + bins}", None
        yield "/v1/alerts", None
        yield "/v1/alertmanager", _notification(turn)
        yield "/metrics", None
        yield "/v1/runs", None
        yield run, None
        yield f"{run}/attainment", None
        yield f"{run}/percentiles?metric={metric}", None
        yield f"{run}/heatmap?metric={metric}&statistic=attainment&threshold={1 + turn}", None
        yield f"{run}/heatmaps?metric={metric}&facet=cache", None
        yield f"{run}/heatmap/cell?row=32&column=1&from_s={turn % 1000}&limit=20", None
        yield f"{run}/requests/{turn % 200}/cell", None
        yield f"{run}/timeline?metric={metric}&bins={bins}", None
        yield f"{run}/outcomes", None
        yield f"{run}/engine", None
        yield f"{run}/nothing-{turn}", None  # a refusal, of a path that was never asked for before


def _notification(turn: int) -> dict[str, object]:
    """Twenty events that began just now: the 1,000 that are kept are there after fifty turns."""
    now = datetime.now(UTC).isoformat()
    alerts = [
        {
            "status": "firing",
            "labels": {"alertname": "Benchmark", "slo": f"slo-{turn % SLOS:02}", "event": f"{turn}-{number}"},
            "annotations": {},
            "startsAt": now,
            "endsAt": "0001-01-01T00:00:00Z",
            "fingerprint": f"{turn:08x}{number:08x}",
        }
        for number in range(20)
    ]
    return {"version": "4", "status": "firing", "alerts": alerts}


class Load:
    """Requests to the service and to the engine, until told to end; statuses are counted."""

    def __init__(self, service: Server, engine: Server) -> None:
        self.statuses: dict[str, dict[int, int]] = {}
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(service.url,)),
            threading.Thread(target=self._work, args=(engine.url,)),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def running(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def _ask(self, url: str) -> None:
        with httpx2.Client(base_url=url, timeout=60) as connection:
            for path, body in questions():
                if self._ended.wait(PAUSE_S):
                    return
                answer = connection.get(path) if body is None else connection.post(path, json=body)
                counts = self.statuses.setdefault(_NUMBER.sub("N", path.partition("?")[0]), {})
                counts[answer.status_code] = counts.get(answer.status_code, 0) + 1

    def _work(self, url: str) -> None:
        while not self._ended.wait(1.0):
            complete(url, 20, 2)


def sample(pid: int, load: Load, seconds: float, into: Path) -> list[float]:
    """Resident memory every 10 s, MB; each is written to `into` at once."""
    found = []
    started_s = time.monotonic()
    with into.open("w") as file:
        for number in range(int(seconds / EVERY_S)):
            time.sleep(max(0.0, started_s + number * EVERY_S - time.monotonic()))
            assert load.running
            found.append(memory_mb(pid))
            file.write(json.dumps({"at_s": number * EVERY_S, "memory_mb": found[-1]}) + "\n")
            file.flush()
    return found


def slope(memory: list[float]) -> dict[str, float]:
    """MB an hour after the warm-up, with the ends of its 95 % interval."""
    kept = memory[int(len(memory) * WARM_UP_SHARE) :]
    medians = [statistics.median(kept[at : at + BLOCK]) for at in range(0, len(kept) - BLOCK + 1, BLOCK)]
    hours = [number * BLOCK * EVERY_S / 3600 for number in range(len(medians))]
    found = stats.theilslopes(medians, hours, alpha=0.95)
    return {
        "n": len(medians),
        "mb_per_hour": round(float(found.slope), 3),
        "low_mb_per_hour": round(float(found.low_slope), 3),
        "high_mb_per_hour": round(float(found.high_slope), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--samples", type=Path, default=None, help="a file for each sample as it is taken")
    asked = parser.parse_args()
    if asked.minutes < MIN_MINUTES:
        parser.error(f"--minutes: allowed: {MIN_MINUTES:g} and more, else there are too few medians for a slope")
    with tempfile.TemporaryDirectory() as name, watching_service(Path(name)) as (service, engine):
        with Load(service, engine) as load:
            memory = sample(service.pid, load, asked.minutes * 60, asked.samples or Path(name) / "samples.jsonl")
        statuses = load.statuses
    found = slope(memory)
    level = statistics.median(memory[int(len(memory) * WARM_UP_SHARE) :])
    result = {
        "slos": SLOS,
        "minutes": asked.minutes,
        "warm_up_minutes": asked.minutes * WARM_UP_SHARE,
        "statuses": statuses,
        "memory_mb": {"first": round(memory[0], 1), "median": round(level, 1), "last": round(memory[-1], 1)},
        "slope": found,
        "by_two_minutes_mb": [
            round(statistics.median(memory[at : at + BLOCK]), 1) for at in range(0, len(memory), BLOCK)
        ],
    }
    conclude("slo_memory", result, passed=found["low_mb_per_hour"] <= MAX_GROWTH * level)


if __name__ == "__main__":
    main()
