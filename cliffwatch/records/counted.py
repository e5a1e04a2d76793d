"""Requests counted as they end, by a bounded set of labels: what live metrics are made of.

Everything here only ever grows, so counters that are exported from it never go back. A worker's counts since the start
of the run are one message; the newest message of each worker, added up, are the run's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cliffwatch.records.checks import CHECKS
from cliffwatch.records.readings import READINGS, Bound, dispatch_lag_s, proves_latency
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.stats.histogram import Buckets, Histogram

LABELS = ("phase", "input_tokens", "batch", "cache", "model", "tenant", "outcome")
OTHER = "other"
# So many sets of labels, of a worker and of a run, are told apart; what comes after them is counted under `other`, by
# phase and outcome alone.
MAX_SETS = 400
MAX_SETS_IN_ALL = MAX_SETS + len(Phase) * len(Outcome)

_LAGS_S = (0.0001, 0.0003, 0.001, 0.002, 0.005, 0.01, 0.02, 0.1, 0.3, 3.0, 10.0)
_LAG_LIMITS_S = {
    limit for check in CHECKS if check.name == "send lag" for limit in (check.degraded, check.invalid) if limit
}
LAG_EDGES_S = tuple(sorted(_LAG_LIMITS_S.union(_LAGS_S)))

Edges = Mapping[str, tuple[float, ...]]  # by figure, see READINGS
_Key = tuple[Any, ...]


class SetCounts(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one set of labels. `labels` are the values of LABELS, "" where there is none; `histograms` are
    in the order of the figures; tokens are those that the server told of (and output tokens also counted by chunks)."""

    labels: tuple[str, ...]
    requests: int
    input_tokens: int
    output_tokens: int
    histograms: list[Buckets]


class Counted(msgspec.Struct, frozen=True):
    """All requests that ended so far: by labels, and by phase what the load generator was late."""

    sets: list[SetCounts]
    lags: dict[Phase, Buckets]


class _Set:
    """One set of labels while it is counted; `readings` are those that apply to its outcome."""

    __slots__ = ("bounds", "histograms", "input_tokens", "labels", "output_tokens", "readings", "requests")

    def __init__(self, labels: tuple[str, ...], edges: Edges) -> None:
        self.labels = labels
        self.requests = self.input_tokens = self.output_tokens = 0
        self.histograms = [Histogram(own) for own in edges.values()]
        self.readings: list[tuple[Callable[[RequestRow], float | None], Callable[[float], None]]] = []
        self.bounds: list[tuple[Callable[[RequestRow], Bound | None], Histogram]] = []
        outcome = Outcome(labels[-1])
        for figure, histogram in zip(edges, self.histograms, strict=True):
            reading = READINGS[figure]
            if outcome is Outcome.OK:
                self.readings.append((reading.ok, histogram.observe))
            elif reading.failed is not None and proves_latency(outcome):
                self.bounds.append((reading.failed, histogram))

    def add(self, counts: SetCounts) -> None:
        self.requests += counts.requests
        self.input_tokens += counts.input_tokens
        self.output_tokens += counts.output_tokens
        for histogram, buckets in zip(self.histograms, counts.histograms, strict=True):
            histogram.add(buckets)

    def counts(self) -> SetCounts:
        histograms = [histogram.buckets() for histogram in self.histograms]
        return SetCounts(self.labels, self.requests, self.input_tokens, self.output_tokens, histograms)


class RowCounts:
    """Counts rows. On the way of every request: a look-up, then a bisection and an addition for each figure."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self._sets: dict[_Key, _Set] = {}
        self._others: dict[_Key, _Set] = {}
        self._lags = {phase: Histogram(LAG_EDGES_S) for phase in Phase}

    def count(self, row: RequestRow) -> None:
        """Count a request that has ended."""
        octave = row.input_tokens.bit_length()
        key = (row.phase, octave, row.batch, row.cache, row.model, row.tenant, row.outcome)
        one = self._sets.get(key) or self._admit(key)
        one.requests += 1
        one.input_tokens += row.server_input_tokens or 0
        one.output_tokens += row.output_tokens or 0
        lag_s = dispatch_lag_s(row)
        if lag_s is not None:
            self._lags[row.phase].observe(max(0.0, lag_s))
        for read, observe in one.readings:
            value = read(row)
            if value is not None:
                observe(value)
        for bound_of, histogram in one.bounds:
            bound = bound_of(row)
            if bound is not None:
                (histogram.observe_above if bound.beyond else histogram.observe)(bound.value)

    def counted(self) -> Counted:
        """Everything up to now."""
        sets = [one.counts() for one in (*self._sets.values(), *self._others.values())]
        return Counted(sets=sets, lags={phase: lags.buckets() for phase, lags in self._lags.items() if lags.counts})

    def _admit(self, key: _Key) -> _Set:
        phase, octave, batch, cache, model, tenant, outcome = key
        if len(self._sets) < MAX_SETS:
            labels = (phase.value, octave_text(octave), str(batch), cache, model, tenant or "", outcome.value)
            return self._sets.setdefault(key, _Set(labels, self.edges))
        known = self._others.get((phase, outcome))
        return known or self._others.setdefault((phase, outcome), _Set(_other(phase.value, outcome.value), self.edges))


class MergedCounts:
    """The counts of several workers, by shard; a worker that died keeps its last."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self._newest: dict[int, Counted] = {}
        self._admitted: set[tuple[str, ...]] = set()  # for good: what was once told apart stays so

    def take(self, shard: int, counted: Counted) -> bool:
        """Put this in the place of what the shard said before. False for counts of another shape: nothing is taken."""
        if not self._fits(counted):
            return False
        for one in counted.sets:
            if len(self._admitted) < MAX_SETS and OTHER not in one.labels:
                self._admitted.add(one.labels)
        self._newest[shard] = counted
        return True

    def requests_of(self, shard: int) -> int:
        """How many requests of a worker are counted."""
        known = self._newest.get(shard)
        return 0 if known is None else sum(one.requests for one in known.sets)

    def counted(self) -> Counted:
        """The sum over all workers."""
        sets: dict[tuple[str, ...], _Set] = {}
        lags: dict[Phase, Histogram] = {}
        for counted in self._newest.values():
            for one in counted.sets:
                labels = one.labels if one.labels in self._admitted else _other(one.labels[0], one.labels[-1])
                known = sets.get(labels) or sets.setdefault(labels, _Set(labels, self.edges))
                known.add(one)
            for phase, buckets in counted.lags.items():
                lags.setdefault(phase, Histogram(LAG_EDGES_S)).add(buckets)
        return Counted(
            sets=[one.counts() for one in sets.values()], lags={phase: one.buckets() for phase, one in lags.items()}
        )

    def _fits(self, counted: Counted) -> bool:
        outcomes, phases = set(Outcome), set(Phase)
        return (
            len(counted.sets) <= MAX_SETS_IN_ALL
            and all(_within(len(LAG_EDGES_S), buckets) for buckets in counted.lags.values())
            and all(
                len(one.labels) == len(LABELS)
                and one.labels[0] in phases
                and one.labels[-1] in outcomes
                and len(one.histograms) == len(self.edges)
                and all(map(_within, map(len, self.edges.values()), one.histograms))
                for one in counted.sets
            )
        )


def _within(last: int, buckets: Buckets) -> bool:
    return all(0 <= bucket <= last and count >= 0 for bucket, count in buckets[1])


def _other(phase: str, outcome: str) -> tuple[str, ...]:
    return (phase, *[OTHER] * (len(LABELS) - 2), outcome)


def octave_text(octave: int) -> str:
    """The whole numbers with so many binary digits, such as `1024-2047`: a row of the heatmap's grid."""
    return f"{1 << octave - 1}-{(1 << octave) - 1}" if octave else "0"
