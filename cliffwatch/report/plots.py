"""The data of the report's plots, binned in DuckDB: its size does not grow with the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import FAILED, NEVER_SERVED, OK, in_phase
from cliffwatch.records.schema import Phase
from cliffwatch.report.query import ok_in, row, rows
from cliffwatch.slo.judgement import Bucket, ObjectiveResult, Quantile
from cliffwatch.slo.quantiles import quantile
from cliffwatch.surface.cells import Cell
from cliffwatch.surface.contrast import contrast
from cliffwatch.surface.drill import Slow, slowest
from cliffwatch.surface.findings import findings_in
from cliffwatch.surface.grid import ALL_PHASES, Question, RowsSource, grid_of, samples

# A time bin holds at least this many requests on average, half as many again as a P95 needs to be shown: of bins of 30,
# one in 46 has fewer than 20 (Poisson). Such a P95 rests on one or two requests, which is enough to see a trend and is
# marked as few; more bins would only show noise.
REQUESTS_PER_BIN = 30
MAX_TIME_BINS = 120
BIN_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
MAX_DISTRIBUTION_BINS = 80
MIN_DISTRIBUTION_BINS = 12
BINS_PER_DECADE = (40, 20, 10, 5, 2)
SHORTEST_S = 1e-6
SLOWEST = 5


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Distribution(_Part):
    """Counts of a latency over logarithmic bins: `edges` in seconds are one more than `counts`."""

    label: str
    figure: str
    n: int
    edges: tuple[float, ...]
    counts: tuple[int, ...]


class TimeBin(_Part):
    """Requests that were due within one bin; latencies in seconds, of the successful ones.

    `not_served` were cancelled, late or lost; `p50.n`, also that of `p95`, are the successes that have the figure.
    """

    start_s: float
    n: int
    failed: int
    not_served: int
    p50: Quantile
    p95: Quantile


class Timeline(_Part):
    """One latency over the time at which requests were due, from the run's zero."""

    label: str
    figure: str
    bin_s: float
    bins: tuple[TimeBin, ...]


class Heatmap(_Part):
    """A grid with its labels: cells[r][c] belongs to rows[r] (input tokens a prompt) and columns[c] (batch).

    `thresholds_s[r]` is the strictest objective that all lengths of the row have; null where there is none.
    `slowest[r][c]` are the slowest requests of a cell. `jumps` are its cliffs, or its steepest step: kind, and the cell
    (r, c) that it leads up to from the row before; `says` tells them in words.
    """

    label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    thresholds_s: tuple[float | None, ...]
    slowest: tuple[tuple[tuple[Slow, ...], ...], ...]
    says: str
    jumps: tuple[tuple[str, int, int], ...]


class Cached(_Part):
    """A latency over input length at one batch size, with and without a shared prefix, and what it says."""

    batch: str
    says: str
    middles: tuple[float, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]


def distribution(connection: duckdb.DuckDBPyConnection, label: str, figure: str, phase: Phase | None) -> Distribution:
    """Bin one latency of the successful requests; as fine as their number and `MAX_DISTRIBUTION_BINS` allow."""
    value = f"greatest({figure}, {SHORTEST_S})"
    condition = f"{figure} IS NOT NULL AND {ok_in(phase)}"
    low, high, n = row(connection, f"min({value}), max({value}), count(*)", condition)
    if not n:
        return Distribution(label=label, figure=figure, n=0, edges=(), counts=())
    decades = math.log10(high / low)
    per_decade = next((per for per in BINS_PER_DECADE if decades * per < _bin_limit(n)), BINS_PER_DECADE[-1])
    number = f"floor(log10({value}) * {per_decade})::INTEGER"
    found = dict(rows(connection, f"{number}, count(*)", condition, "GROUP BY 1"))
    numbers = range(min(found), max(found) + 1)
    return Distribution(
        label=label,
        figure=figure,
        n=n,
        edges=tuple(10 ** (number / per_decade) for number in range(numbers.start, numbers.stop + 1)),
        counts=tuple(found.get(number, 0) for number in numbers),
    )


def _bin_limit(n: int) -> int:
    """Bins that `n` samples can fill without showing noise: the cube root of n times 3 (Rice's rule has 2)."""
    return min(MAX_DISTRIBUTION_BINS, max(MIN_DISTRIBUTION_BINS, math.ceil(3 * math.cbrt(n))))


def timeline(
    connection: duckdb.DuckDBPyConnection,
    label: str,
    figure: str,
    phase: Phase | None,
    *,
    max_bins: int = MAX_TIME_BINS,
) -> Timeline:
    """P50 and P95 of one figure, and what failed, over the time at which requests were due.

    There are at most `max_bins`, or one more where the ends do not fall on a bin's edge.
    """
    condition = in_phase(phase)
    start, end, n = row(connection, "min(intended_ns) / 1e9, max(intended_ns) / 1e9, count(*)", condition)
    if not n:
        return Timeline(label=label, figure=figure, bin_s=BIN_STEPS_S[0], bins=())
    bin_s = _bin_width(end - start, n, max_bins)
    found = rows(
        connection,
        f"floor(intended_ns / 1e9 / {bin_s})::BIGINT AS bin, count(*), count(*) FILTER ({FAILED}),"
        f" count(*) FILTER ({NEVER_SERVED}), count({figure}) FILTER ({OK}),"
        f" quantile_cont({figure}, [0.5, 0.95]) FILTER ({OK})",
        condition,
        "GROUP BY 1 ORDER BY 1",
    )
    return Timeline(
        label=label, figure=figure, bin_s=bin_s, bins=tuple(_time_bin(bin_s, *one) for one in _filled(found))
    )


def _bin_width(span_s: float, n: int, max_bins: int) -> float:
    bins = max(1, min(max_bins, n // REQUESTS_PER_BIN))
    wanted = span_s / bins
    return next((step for step in BIN_STEPS_S if step >= wanted), math.ceil(wanted / 86400) * 86400.0)


def _filled(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with the bins that no request was due in, so that a gap in the traffic is seen as one."""
    by_bin = {one[0]: one for one in found}
    return [by_bin.get(number, (number, 0, 0, 0, 0, None)) for number in range(found[0][0], found[-1][0] + 1)]


def _time_bin(
    bin_s: float, number: int, n: int, failed: int, not_served: int, observed: int, values: list[float] | None
) -> TimeBin:
    p50, p95 = values if values is not None else (None, None)
    return TimeBin(
        start_s=round(number * bin_s, 6),  # 3 x 0.1 s is 0.3 s
        n=n,
        failed=failed,
        not_served=not_served,
        p50=quantile(p50, observed, 0.50),
        p95=quantile(p95, observed, 0.95),
    )


def latency_heatmap(
    connection: duckdb.DuckDBPyConnection,
    label: str,
    figure: str,
    statistic: str,
    phase: Phase | None,
    objectives: Sequence[ObjectiveResult],
) -> Heatmap:
    """Latency over input length and batch, where it jumps, and the objectives that its cells are held against.

    Args:
        label: the latency in words.
        statistic: one that cliffs are looked for in.
    """
    question = Question(figure, statistic, phase=_name(phase))
    seen = samples(connection, question)
    grid = grid_of(question, seen)
    found, jumps = slowest(connection, question, SLOWEST), findings_in(grid, seen, label)
    return Heatmap(
        label=f"{label} {statistic.upper()}",
        rows=grid.rows.labels,
        columns=grid.columns.labels,
        cells=grid.cells,
        thresholds_s=tuple(_strictest(objectives, figure, *span) for span in grid.rows.spans if span),
        slowest=tuple(tuple(found.get((row, column), ()) for column in grid.columns.keys) for row in grid.rows.keys),
        says=jumps.says,
        jumps=tuple(
            (one.kind, grid.rows.keys.index(one.row), grid.columns.keys.index(one.column)) for one in jumps.found
        ),
    )


def _name(phase: Phase | None) -> str:
    return str(phase) if phase else ALL_PHASES


def cached(connection: duckdb.DuckDBPyConnection, figure: str, phase: Phase | None) -> Cached | None:
    """The median at the first batch size that has both states at a length; None where none has."""
    question = Question(figure, "p50", "input_tokens", "cache", _name(phase), facet="batch")
    for grid in RowsSource(connection).grids(question):
        if (says := contrast(grid)) is not None:
            return Cached(
                batch=grid.facet or "",
                says=says,
                middles=grid.rows.middles or (),
                rows=grid.rows.labels,
                columns=grid.columns.labels,
                cells=grid.cells,
            )
    return None


def _strictest(objectives: Sequence[ObjectiveResult], figure: str, low: float, high: float) -> float | None:
    """The lowest threshold of the objectives on `figure` whose bucket holds all lengths low <= x < high."""
    held = [
        one.threshold_s
        for one in objectives
        if one.figure == figure and one.threshold_s is not None and _covers(one.input_tokens, low, high)
    ]
    return min(held, default=None)


def _covers(bucket: Bucket | None, low: float, high: float) -> bool:
    return bucket is None or (bucket.min <= low and (bucket.max is None or high - 1 <= bucket.max))


def mostly_known(grid: Heatmap) -> bool:
    """Whether at least half of the cells that hold requests have enough of them to show the statistic."""
    held = [cell.value is not None for line in grid.cells for cell in line if cell.n]
    return 2 * sum(held) >= len(held)
