"""A run's figures with their intervals, from its rows. Memory: 8 bytes a request for one latency at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import duckdb
import numpy as np

from cliffwatch.compare.metrics import Kind, Metric
from cliffwatch.records.conditions import FAILED, OK, in_phase
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.intervals import share_inflation, windows
from cliffwatch.report.query import ok_in, row
from cliffwatch.slo.judge import meets_all
from cliffwatch.slo.spec import SloFile
from cliffwatch.stats.clusters import WINDOWS
from cliffwatch.stats.difference import Estimate
from cliffwatch.stats.estimates import QuantileEstimate, RateEstimate, ShareEstimate

_MEASURED = in_phase(Phase.MEASURED)


@dataclass(frozen=True)
class Measured:
    """A figure of one run; the estimate is None where it is not known at all. `n` is the requests behind it."""

    estimate: Estimate | None
    n: int


def measure(
    reader: RunReader, metrics: Sequence[Metric], slo: SloFile | None, *, open_loop: bool
) -> dict[str, Measured]:
    """Name of each metric to its figure over the measured requests. Raises RunError on damaged shards.

    Args:
        slo: for goodput; metrics that need one are left out where there is none.
        open_loop: whether latencies run from the intended time.
    """
    good = meets_all(slo, open_loop=reader.manifest.open_loop) if slo else None
    found: dict[str, Measured] = {}
    with reader.session() as connection:
        latencies = [metric for metric in metrics if metric.kind is Kind.LATENCY]
        for figure, group in groupby(latencies, lambda one: one.open_figure if open_loop else one.closed_figure):
            found |= _latency(connection, figure, list(group))
        for metric in metrics:
            if metric.kind is Kind.LATENCY or (metric.of_slo and good is None):
                continue
            measured = _share if metric.kind is Kind.SHARE else _rate
            found[metric.name] = measured(connection, metric, good or "FALSE")
    return found


def _latency(connection: duckdb.DuckDBPyConnection, figure: str, metrics: list[Metric]) -> dict[str, Measured]:
    condition = f"{ok_in(Phase.MEASURED)} AND {figure} IS NOT NULL"
    query = f"SELECT {figure} AS figure FROM requests WHERE {condition}"  # noqa: S608  names of our own tables
    ascending = np.sort(np.asarray(connection.execute(query).fetchnumpy()["figure"], dtype=np.float64))
    if not len(ascending):
        return {metric.name: Measured(None, 0) for metric in metrics}
    plain = [QuantileEstimate(ascending, metric.p) for metric in metrics]
    factors = share_inflation(connection, [(f"{figure} <= {one.value!r}", figure) for one in plain], condition)
    return {
        metric.name: Measured(QuantileEstimate(ascending, metric.p, factor), len(ascending))
        for metric, factor in zip(metrics, factors, strict=True)
    }


# What counts as a hit, and among which requests; a late request was never sent.
_ANSWERED = f"({OK} OR {FAILED})"
_SENT = f"outcome <> '{Outcome.LATE}'"


def _share(connection: duckdb.DuckDBPyConnection, metric: Metric, good: str) -> Measured:
    hit, among = (good, _SENT) if metric.of_slo else (FAILED, _ANSWERED)
    condition = f"{_MEASURED} AND {among}"
    hits, n = row(connection, f"count(*) FILTER ({hit}), count(*)", condition)
    if not n:
        return Measured(None, 0)
    (factor,) = share_inflation(connection, [(hit, "request_id")], condition)
    return Measured(ShareEstimate(hits, n, factor), n)


def _rate(connection: duckdb.DuckDBPyConnection, metric: Metric, good: str) -> Measured:
    """Per second of what ended while load was offered, from the first request due to the last one due.

    What ends later is left out on purpose: one time-out after the load would halve the rate of a short run.
    """
    first, last = row(connection, "min(intended_ns), max(intended_ns)", _MEASURED)
    if first is None or last <= first:
        return Measured(None, 0)
    condition = f"{good if metric.of_slo else OK} AND {_MEASURED} AND ended_ns <= {last}"
    amount = "output_tokens" if metric.name == "output_tokens" else "1"
    n, total, unknown = row(
        connection, f"count(*), coalesce(sum({amount}), 0), count(*) FILTER ({amount} IS NULL)", condition
    )
    if unknown:
        return Measured(None, n)
    held_s = (last - first) / 1e9
    amounts = _padded(windows(connection, [f"sum({amount})"], condition, "ended_ns", (first, last)))
    return Measured(RateEstimate(float(total) / held_s, tuple(one * WINDOWS / held_s for one in amounts)), n)


def _padded(found: Sequence[Sequence[float]]) -> Iterator[float]:
    """Windows in which nothing ended count as 0."""
    yield from (float(amount) for (amount,) in found)
    yield from [0.0] * (WINDOWS - len(found))
