"""What Locust shows of a run, from reports only: exact counts, latencies within its rounding and our bound."""

from __future__ import annotations

import pytest

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from loadgen.accounting import Tally

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")  # this process's sockets and threads are other tests' too
    from locust.stats import RequestStats

    from loadgen.locust_statistics import LocustStatistics


class NoDisk:
    def issued(self, request_id: int, intended_ns: int) -> None: ...

    def ended(self, row: RequestRow) -> None: ...


def row(number: int, outcome: Outcome = Outcome.OK) -> RequestRow:
    """An answer whose first token takes 10 ms and its last `number` ms; a failure has neither."""
    ok = outcome is Outcome.OK
    return RequestRow(
        request_id=number, worker=0, phase=Phase.MEASURED, endpoint="chat", model="m", batch=1, cache="none",
        input_tokens=1, max_output_tokens=1, intended_ns=0, sent_ns=1000, ended_ns=number * 1_000_000, outcome=outcome,
        first_token_ns=10_000_000 if ok else None, last_token_ns=number * 1_000_000 if ok else None,
    )  # fmt: skip


def end(tally: Tally, *rows: RequestRow) -> None:
    for ended in rows:
        tally.issued(ended.request_id, 0)
        tally.ended(ended)


def test_each_report_adds_what_is_new_and_failures_have_no_latency():
    stats, tally = RequestStats(), Tally("run", 0, NoDisk())
    shown = LocustStatistics(stats)
    end(tally, *(row(number) for number in range(100, 200)))
    shown.show(tally.report())
    end(tally, *(row(number) for number in range(200, 300)))
    end(tally, *(row(number, Outcome.HTTP_5XX) for number in range(3)), row(7, Outcome.CANCELLED))
    shown.show(tally.report())
    shown.show(tally.report())  # nothing new
    first, last = stats.get("requests", "TTFT"), stats.get("requests", "E2E")
    assert (first.num_requests, first.num_failures) == (200, 0)
    assert (last.num_requests, last.num_failures, last.num_none_requests) == (203, 3, 3)
    assert first.median_response_time == pytest.approx(10, rel=0.1)
    assert last.get_response_time_percentile(0.95) == pytest.approx(289, rel=0.05)
    assert last.avg_response_time == pytest.approx(199.5, rel=0.02)
    assert stats.total.num_requests == 403
    assert [(error.error, error.occurrences) for error in stats.errors.values()] == [("http_5xx", 3)]


def test_a_second_run_starts_from_nothing():
    stats = RequestStats()
    shown = LocustStatistics(stats)
    for run_id in ("first", "second"):
        tally = Tally(run_id, 0, NoDisk())
        end(tally, row(100))
        shown.show(tally.report())
    assert stats.get("requests", "E2E").num_requests == 2
