"""A worker's traffic in Locust's own statistics, for its web page and its table; ours are in the run folder.

Locust counts a request at a time, which costs as much as sending one. Here its books are brought up to date when a
report is made: the work goes with the number of reports. Its figures are rounded anyway (two digits).
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from locust.stats import RequestStats, StatsEntry, StatsError, bucket_response_time

from cliffwatch.records.schema import Outcome
from cliffwatch.stats.sketch import Sketch
from loadgen.accounting import WorkerReport

_NAME = "requests"
_KINDS = {"TTFT": "ttft", "E2E": "e2e"}
_NO_FAILURE = {Outcome.OK, Outcome.CANCELLED}


class LocustStatistics:
    """Adds to `stats` what a report has over the one before it. TTFT and E2E are entries of their own; requests that
    failed have no latency and count under E2E."""

    def __init__(self, stats: RequestStats) -> None:
        self._stats = stats
        self._run_id = ""
        self._shown: dict[str, Counter[float]] = {}
        self._failed: Counter[Outcome] = Counter()

    def show(self, report: WorkerReport) -> None:
        """Take in a report; those of one run come in order."""
        if report.run_id != self._run_id:
            self._run_id, self._shown, self._failed = report.run_id, {}, Counter()
        failed = Counter({kind: n for kind, n in report.outcomes.items() if kind not in _NO_FAILURE})
        for method, figure in _KINDS.items():
            seen = Counter(dict(Sketch.from_dict(report.sketches[figure]).values()))
            fresh = seen - self._shown.get(figure, Counter())
            self._shown[figure] = seen
            self._add(method, fresh, failed - self._failed if method == "E2E" else Counter())
        self._failed = failed

    def _add(self, method: str, latencies_s: Counter[float], failures: Counter[Outcome]) -> None:
        if not latencies_s and not failures:
            return
        second, failed = int(time.time()), failures.total()
        entry: Any = StatsEntry(self._stats, _NAME, method)
        for latency_s, count in latencies_s.items():
            entry.response_times[bucket_response_time(latency_s * 1e3)] += count
            entry.total_response_time += latency_s * 1e3 * count
        if latencies_s:
            entry.min_response_time, entry.max_response_time = min(latencies_s) * 1e3, max(latencies_s) * 1e3
        entry.num_none_requests = entry.num_failures = failed
        entry.num_requests = latencies_s.total() + failed
        entry.num_reqs_per_sec[second] = entry.num_requests
        entry.num_fail_per_sec[second] = failed
        entry.last_request_timestamp = time.time()
        for books in (self._stats.get(_NAME, method), self._stats.total):
            books.extend(entry)
        for outcome, count in failures.items():
            self._error(outcome, method).occurrences += count

    def _error(self, outcome: Outcome, method: str) -> StatsError:
        key = StatsError.create_key(method, _NAME, outcome.value)
        if key not in self._stats.errors:
            self._stats.errors[key] = StatsError(method, _NAME, outcome.value)
        return self._stats.errors[key]
