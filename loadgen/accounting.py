"""What workers tell the master: one small, numbered message every few seconds, whatever the request rate.

Every message holds the totals since the start of the run, not what changed. So one that is lost costs nothing, one
that comes twice or out of order is ignored, and the master's work does not grow with the traffic.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from cliffwatch.records.clock import WorkerClock
from cliffwatch.records.counted import Counted, Edges, MergedCounts, RowCounts
from cliffwatch.records.health import Health
from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.stats.sketch import Sketch

FIGURES = ("ttft", "itl", "e2e", "lag")


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of one worker. Latencies are sketches in seconds; TTFT and E2E count from the intended time.

    `counted` is there where live metrics were asked for. `failure` says why a worker could not go on; `closed` that its
    shard is written and nothing more will come; `cut_short` that it was stopped before its part of the schedule was
    done. `pause_s` is the longest time that its process stood still during the run, from `pause_began_unix_ns` on.
    """

    run_id: str
    shard: int
    seq: int
    host: str
    pid: int
    issued: int
    in_flight: int
    outcomes: dict[Outcome, int]
    last_end_ns: int
    output_tokens: int
    sketches: dict[str, dict[str, Any]]
    errors: dict[str, str]
    health: Health | None = None
    clock: WorkerClock | None = None
    counted: Counted | None = None
    failure: str | None = None
    closed: bool = False
    cut_short: bool = False
    pause_s: float = 0.0
    pause_began_unix_ns: int = 0


class Recorder(Protocol):
    """Keeps what happened; raises CliffwatchError when it cannot."""

    def issued(self, request_id: int, intended_ns: int) -> None: ...

    def ended(self, row: RequestRow) -> None: ...


class Tally:
    """A worker's totals. It stands before the recorder: what the recorder did not take is counted all the same."""

    def __init__(self, run_id: str, shard: int, recorder: Recorder, counts: RowCounts | None = None) -> None:
        """`counts` counts every row for live metrics."""
        self.counts = counts
        self._run_id = run_id
        self._shard = shard
        self._recorder = recorder
        self._seq = 0
        self._issued = 0
        self._last_end_ns = 0
        self._output_tokens = 0
        self._outcomes: Counter[Outcome] = Counter()
        self._errors: dict[str, str] = {}
        self._sketches = {name: Sketch() for name in FIGURES}

    def issued(self, request_id: int, intended_ns: int) -> None:
        """See `Recorder`. Raises what the recorder raises; the request is not issued then."""
        self._recorder.issued(request_id, intended_ns)
        self._issued += 1

    def ended(self, row: RequestRow) -> None:
        """See `Recorder`. Raises what the recorder raises."""
        self._outcomes[row.outcome] += 1
        self._last_end_ns = max(self._last_end_ns, row.ended_ns or 0)
        self._output_tokens += row.output_tokens or 0
        if row.error is not None:
            self._errors.setdefault(row.outcome.value, row.error)
        self._measure(row)
        if self.counts is not None:
            self.counts.count(row)
        self._recorder.ended(row)

    @property
    def issued_so_far(self) -> int:
        """Requests issued."""
        return self._issued

    @property
    def in_flight(self) -> int:
        """Requests issued that have not ended."""
        return self._issued - self._outcomes.total()

    def report(
        self,
        *,
        failure: str | None = None,
        health: Health | None = None,
        closed: bool = False,
        cut_short: bool = False,
    ) -> WorkerReport:
        """The totals up to now, under the next number."""
        self._seq += 1
        return WorkerReport(
            run_id=self._run_id,
            shard=self._shard,
            seq=self._seq,
            host=platform.node(),
            pid=os.getpid(),
            issued=self.issued_so_far,
            in_flight=self.in_flight,
            outcomes=dict(self._outcomes),
            last_end_ns=self._last_end_ns,
            output_tokens=self._output_tokens,
            sketches={name: sketch.to_dict() for name, sketch in self._sketches.items()},
            errors=self._errors,
            health=health,
            counted=None if self.counts is None else self.counts.counted(),
            failure=failure,
            closed=closed,
            cut_short=cut_short,
        )

    def _measure(self, row: RequestRow) -> None:
        if (sent_ns := row.first_sent_ns) is not None:
            self._sketches["lag"].add(max(0, sent_ns - row.intended_ns - (row.connect_ns or 0)) / 1e9)
        if row.outcome is not Outcome.OK:
            return
        for name, at_ns in (("ttft", row.first_token_ns), ("e2e", row.last_token_ns)):
            if at_ns is not None:
                self._sketches[name].add(max(0, at_ns - row.intended_ns) / 1e9)
        if row.itl_s is not None:
            self._sketches["itl"].add(row.itl_s)


@dataclass
class Totals:
    """The sum of the newest reports of all workers.

    `rate` is issued requests a second by those that still live, None before anyone said; `dead` counts the others.
    """

    rate: float | None = None
    dead: int = 0
    issued: int = 0
    in_flight: int = 0
    output_tokens: int = 0
    last_end_ns: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    errors: dict[str, str] = field(default_factory=dict)
    sketches: dict[str, Sketch] = field(default_factory=lambda: {name: Sketch() for name in FIGURES})


class Board:
    """The master's view of its workers: the newest report of each, by shard."""

    def __init__(self, run_id: str, edges: Edges | None = None) -> None:
        """`edges` are those of the live metrics' histograms."""
        self.counts = MergedCounts(edges or {})
        self._run_id = run_id
        self.reports: dict[int, WorkerReport] = {}
        self._taken_s: dict[int, float] = {}

    def take(self, message: object, elapsed_s: float = 0.0) -> WorkerReport | None:
        """Keep a worker's message if it is of this run and newer than what is known; the report, else None. The one
        that says that its shard is closed is the newest, whatever its number.

        `elapsed_s` is the time since the run's zero.
        """
        try:
            report = msgspec.convert(message, WorkerReport)
        except msgspec.ValidationError:
            return None
        known = self.reports.get(report.shard)
        if report.run_id != self._run_id or (
            known is not None and (known.closed, known.seq) >= (report.closed, report.seq)
        ):
            return None
        self.reports[report.shard] = report
        self._taken_s[report.shard] = elapsed_s
        if report.counted is not None:
            self.counts.take(report.shard, report.counted)
        return report

    def totals(self, dead: Collection[int] = ()) -> Totals:
        """Everything added up; exact for counts, within the sketches' bound for latencies. `dead` are shards whose
        worker is gone: what it did counts, but it sends nothing any more."""
        totals = Totals(dead=len(dead))
        rates = [
            report.issued / self._taken_s[shard]
            for shard, report in self.reports.items()
            if self._taken_s[shard] > 0 and shard not in dead
        ]
        totals.rate = sum(rates) if rates else None
        for report in self.reports.values():
            totals.issued += report.issued
            totals.in_flight += 0 if report.shard in dead else report.in_flight
            totals.output_tokens += report.output_tokens
            totals.last_end_ns = max(totals.last_end_ns, report.last_end_ns)
            totals.outcomes.update(report.outcomes)
            totals.errors |= {key: text for key, text in report.errors.items() if key not in totals.errors}
            _merge(totals.sketches, report.sketches)
        return totals


def _merge(into: dict[str, Sketch], sketches: Mapping[str, Mapping[str, Any]]) -> None:
    for name in FIGURES:
        if name in sketches:
            into[name] = into[name].merge(Sketch.from_dict(sketches[name]))
