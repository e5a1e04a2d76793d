"""Intervals of the percentiles of latencies, all figures in two passes of DuckDB (rules: docs/comparison.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from cliffwatch.report.query import row, rows
from cliffwatch.slo.judgement import Quantile
from cliffwatch.stats.clusters import WINDOWS, inflation
from cliffwatch.stats.order import order_ranks

CONFIDENCE = 0.95


class SureQuantile(Quantile):
    """A percentile with its 95 % interval, in seconds: null where the sample is too small (docs/comparison.md)."""

    low: float | None = None
    high: float | None = None


Key = tuple[str, float]  # figure, p
Wanted = Mapping[Key, tuple[float, int]]  # the percentile's value and its n
Intervals = dict[Key, tuple[float, float]]


def windows(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    condition: str,
    time: str = "intended_ns",
    span: tuple[int, int] | None = None,
) -> list[tuple[Any, ...]]:
    """Aggregates over `requests` in each of 20 equal windows of time; windows without a request are left out.

    Args:
        span: first and last instant that the windows cover; default: those of the requests themselves.
    """
    first, last = span or row(connection, f"min({time}), max({time})", condition)
    if first is None:
        return []
    place = (
        f"least({WINDOWS - 1}, floor(({time} - {first})::DOUBLE * {WINDOWS} / {last - first + 1}))::INTEGER AS place"
    )
    selected = ", ".join([place, *columns])
    return [counts[1:] for counts in rows(connection, selected, condition, "GROUP BY place ORDER BY place")]


def share_inflation(
    connection: duckdb.DuckDBPyConnection, hits: Sequence[tuple[str, str]], condition: str
) -> list[float]:
    """For pairs of a condition and what it is counted among (a column that is not null): the variance inflation.

    Args:
        hits: pairs (condition that is a hit, expression that is null where a request does not count).
    """
    columns = [f"count({of}) FILTER ({hit}), count({of})" for hit, of in hits]
    found = windows(connection, columns, condition) if hits else []
    series = list(zip(*found, strict=True)) if found else [()] * (2 * len(hits))
    return [inflation(series[2 * place], series[2 * place + 1]) for place in range(len(hits))]


def percentile_intervals(connection: duckdb.DuckDBPyConnection, wanted: Wanted, condition: str) -> Intervals:
    """The 95 % interval of each percentile, corrected for correlation; left out where the sample is too small."""
    hits = [(f"{figure} <= {value!r}", figure) for (figure, _), (value, _) in wanted.items()]
    factors = share_inflation(connection, hits, condition)
    ranks = {
        key: pair
        for (key, (_, n)), factor in zip(wanted.items(), factors, strict=True)
        if (pair := order_ranks(n, key[1], CONFIDENCE, inflation=factor).pair)
    }
    if not ranks:
        return {}
    # The k-th smallest of n is the discrete quantile of (k - 1/2) / n, half a rank away from any rounding.
    levels = {key: [(rank - 0.5) / wanted[key][1] for rank in pair] for key, pair in ranks.items()}
    found = row(
        connection, ", ".join(f"quantile_disc({figure}, {levels[figure, p]})" for figure, p in ranks), condition
    )
    return {
        key: (min(low, wanted[key][0]), max(high, wanted[key][0]))
        for key, (low, high) in zip(ranks, found, strict=True)
    }
