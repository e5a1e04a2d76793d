"""Why latency jumps, on a real engine: four sequences may run at a time, and batches of one to eight are asked for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cliffwatch.cli.surface_cliffs import app
from tests.servers.engines import standin
from tests.servers.load import run
from tests.servers.processes import get_text

pytestmark = pytest.mark.integration

AT_A_TIME = 4
WORKLOAD: dict[str, Any] = {
    "name": "batches",
    "arrivals": {"kind": "concurrency", "users": 1},
    "requests": 80,
    "input_tokens": {"kind": "fixed", "value": 256},
    "output_tokens": {"kind": "fixed", "value": 64},
    "batch": {"sizes": list(range(1, 9)), "token_budget": "64k", "falloff": 0},
    "endpoint": "completions",
    "seed": 5,
}


@contextmanager
def scraped(url: str, into: Path) -> Iterator[None]:
    """The engine's metrics, again and again, as docs/surfaces.md says they are kept."""
    over = threading.Event()

    def scrape() -> None:
        with into.open("w") as file:
            while not over.is_set():
                file.write(f"# scraped {time.time()}\n{get_text(f'{url}/metrics')}\n")
                over.wait(0.03)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_queue_is_the_cause_where_more_sequences_come_than_may_run(tmp_path: Path) -> None:
    """TTFT is of the slowest prompt: the fifth waits until the first four have all their 64 tokens."""
    slots = ("--max-num-seqs", str(AT_A_TIME))
    with standin(tmp_path, "--speed", "4", *slots) as server, scraped(server.url, tmp_path / "engine.prom"):
        done = run(WORKLOAD, server.url, tmp_path)
    assert done.code in {0, 3}, done.output  # a busy machine may make it INVALID; latencies jump all the same
    asked = [str(done.folder), "--axis", "batch", "--by", "input_tokens", "--metrics", str(tmp_path / "engine.prom")]
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False).output)
    (curve,) = told["curves"].values()
    (cliff,) = curve["cliffs"]
    assert (cliff["after"], cliff["before"]) == (AT_A_TIME, AT_A_TIME + 1)
    assert [cause["name"] for cause in cliff["causes"]] == ["queueing"]
    assert "requests waiting on average, then" in cliff["causes"][0]["evidence"]
    by_settings = CliRunner().invoke(app, [*asked[:-2], *slots], catch_exceptions=False)
    assert "cause: queueing (5 sequences, of which 4 may run at a time)" in by_settings.output
