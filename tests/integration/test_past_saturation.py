"""An open loop that asks a real vLLM for twice what it can do: the schedule holds, and both sides tell the same story.

A generator that waits for a slow server would show a short queue here; an engine that is asked for too much has a long
one, which its own histograms show. Their sums and counts give its exact means, to compare with the client's rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cliffwatch.records.manifest import RunState
from tests.servers.load import Run, run
from tests.servers.metrics import Growth, scrape
from tests.servers.processes import Server

pytestmark = pytest.mark.integration

SHAPE: dict[str, Any] = {
    "input_tokens": {"kind": "uniform", "min": 64, "max": 256},
    "output_tokens": {"kind": "fixed", "value": 48},
    "batch": {"sizes": [1]},
    "endpoint": "completions",
    "seed": 11,
}
LOAD_S = 15
# What lies between the two clocks: a socket, the server's HTTP front and its event loop, all on two busy cores.
BETWEEN_S = 0.1


def capacity(server: Server, folder: Path) -> float:
    """Requests a second that the server completes while all its eight sequences are kept busy."""
    folder.mkdir()
    users = {"kind": "concurrency", "users": 8}
    result = run({**SHAPE, "name": "busy", "arrivals": users, "requests": 48}, server.url, folder)
    assert result.manifest.load_s is not None
    return 48 / result.manifest.load_s


def test_twice_what_it_can_do(vllm_server: Server, tmp_path: Path) -> None:
    rate = round(2 * capacity(vllm_server, tmp_path / "capacity"), 2)
    before = scrape(vllm_server.url)
    arrivals = {"kind": "constant", "rate": rate}
    result = run({**SHAPE, "name": "flood", "arrivals": arrivals, "duration": f"{LOAD_S}s"}, vllm_server.url, tmp_path)
    growth = Growth(before, scrape(vllm_server.url))
    assert result.manifest.state is RunState.COMPLETE, result.output
    assert_the_schedule_held(result, rate)
    assert_both_sides_agree(result, growth)
    assert_the_queue_was_seen(result, growth)


def assert_the_schedule_held(result: Run, rate: float) -> None:
    """Every request of the plan left, near its time, however far the server had fallen behind."""
    accounting = result.manifest.accounting
    assert accounting is not None
    assert accounting.balanced
    assert accounting.late == accounting.lost == accounting.failed == 0
    (sent, last_intended_s, lag_p90_s), *_ = result.rows(
        "select count(sent_ns), max(intended_ns) / 1e9, quantile_cont(sent_ns - intended_ns, 0.9) / 1e9 from requests"
    )
    assert sent == accounting.issued
    assert sent == pytest.approx(LOAD_S * rate, abs=1)
    assert last_intended_s == pytest.approx(LOAD_S, abs=2 / rate)
    assert lag_p90_s < BETWEEN_S


def assert_both_sides_agree(result: Run, growth: Growth) -> None:
    """Count, mean and percentiles of TTFT and E2E, and tokens, by client and by engine."""
    ((requests, output),) = result.rows("select count(*), sum(output_tokens) from requests")
    assert growth.total("vllm:request_success_total") == requests
    assert growth.total("vllm:generation_tokens_total") == output
    for histogram, event in (
        ("vllm:time_to_first_token_seconds", "first_token_ns"),
        ("vllm:e2e_request_latency_seconds", "last_token_ns"),
    ):
        ((seen_s,),) = result.rows(f"select avg({event} - sent_ns) / 1e9 from requests")  # noqa: S608  from above
        counted_s = growth.mean(histogram)
        assert counted_s <= seen_s + 0.005, f"{histogram}: the engine's {counted_s} s, the client's {seen_s} s"
        assert seen_s == pytest.approx(counted_s, rel=0.03, abs=BETWEEN_S)
        for share in (0.5, 0.9):
            query = f"select quantile_cont({event} - sent_ns, {share}) / 1e9 from requests"  # noqa: S608  from above
            ((seen_s,),) = result.rows(query)
            low_s, high_s = growth.percentile_bucket(histogram, share)
            assert low_s <= seen_s <= high_s, f"{histogram} p{share * 100:g}: {seen_s} s, not {low_s} to {high_s} s"


def assert_the_queue_was_seen(result: Run, growth: Growth) -> None:
    """The engine's mean wait in its queue is most of the client's TTFT, which grows third by third."""
    queue_s = growth.mean("vllm:request_queue_time_seconds")
    ((mean_s,),) = result.rows("select avg(first_token_ns - sent_ns) / 1e9 from requests")
    assert 0.5 * mean_s < queue_s < mean_s
    thirds = result.rows(
        "select avg(first_token_ns - sent_ns) from"
        " (select *, ntile(3) over (order by intended_ns) as third from requests) group by third order by third"
    )
    (first_ns,), (second_ns,), (third_ns,) = thirds
    assert first_ns < second_ns < third_ns
