"""Latency over two dimensions of the traffic: the grid behind every heatmap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb

from cliffwatch.errors import InputError
from cliffwatch.records.conditions import OK
from cliffwatch.records.figures import FIGURES, gave_up, late_though_failed
from cliffwatch.records.schema import Phase
from cliffwatch.stats import sample_needs

# Edges lie at powers of two, and from so many requests on at 2^(k/2) as well: fewer would leave most cells under the
# samples that a P95 needs. Edges are the same for every run, and the wide ones are among the narrow ones, so that grids
# of different runs, or of one run at different times, can be laid over each other.
HALF_OCTAVES_FROM = 5_000
ROW_DIMENSIONS = ("input_tokens", "max_output_tokens", "output_tokens", "server_input_tokens")
COLUMN_DIMENSIONS = ("batch", "cache", "endpoint", "model", "worker", "phase")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
STATISTICS = (*PERCENTILES, "mean", "max", "count", "attainment")
# For a mean, a maximum and a share there is no rule as for percentiles; thirty is the usual least for a mean.
SURE_SAMPLES = 30
ALL_PHASES = "all"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: `value` is None where it is not known, `n` the requests behind it, `few` whether they are too few."""

    value: float | None
    n: int
    few: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What a grid answers: a statistic of a metric, by rows and columns, over a phase.

    Attributes:
        metric: a name in `FIGURES`.
        statistic: one of `STATISTICS`.
        rows, columns: one of `ROW_DIMENSIONS`, one of `COLUMN_DIMENSIONS`.
        phase: a `Phase`, or `all`.
        threshold: for `attainment`, in the metric's unit; None for all others.

    Raises:
        InputError: a name is not known, or `attainment` has no threshold (or another statistic has one).
    """

    metric: str
    statistic: str
    rows: str = "input_tokens"
    columns: str = "batch"
    phase: str = Phase.MEASURED.value
    threshold: float | None = None

    def __post_init__(self) -> None:
        allowed: dict[str, Iterable[str]] = {
            "metric": FIGURES,
            "statistic": STATISTICS,
            "rows": ROW_DIMENSIONS,
            "columns": COLUMN_DIMENSIONS,
            "phase": (*(phase.value for phase in Phase), ALL_PHASES),
        }
        for field, names in allowed.items():
            if (name := getattr(self, field)) not in names:
                raise InputError(f"unknown {field}", field=field, value=name, allowed=", ".join(names))
        if (self.statistic == "attainment") != (self.threshold is not None):
            raise InputError("goes with attainment, and only with it", field="threshold", value=self.threshold)
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InputError("must be a finite number", field="threshold", value=self.threshold)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of cells.

    Attributes:
        question: what was asked.
        unit: of the cells' values: the metric's, `ratio` for attainment, `requests` for count.
        row_edges: whole numbers, one more than there are rows; row r holds edges[r] <= x < edges[r + 1], the last row
            its upper edge as well.
        column_values: one for each column, in order.
        cells: cells[r][c].
        n: requests in all cells.
        unplaced: requests with a value but without a row or column, such as an output length that is not known.
    """

    question: Question
    unit: str
    row_edges: tuple[int, ...]
    column_values: tuple[int | str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    n: int
    unplaced: int


class Fetches(Protocol):
    """Anything that answers a query over a view `requests`, such as a `RunReader`."""

    def fetch(self, sql: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]: ...


def heatmap(
    source: Fetches | duckdb.DuckDBPyConnection,
    metric: str,
    statistic: str,
    rows: str = "input_tokens",
    columns: str = "batch",
    phase: str = Phase.MEASURED.value,
    threshold: float | None = None,
) -> Grid:
    """The statistic of a metric over bins of one dimension and values of another; arguments as in `Question`.

    Percentiles, mean and maximum are of requests that ended `ok`. Attainment is the share that took at most
    `threshold`, of those and of the failed requests that are known to have taken longer, as docs/judgement.md counts
    them. `count` is of requests of any outcome.

    Args:
        source: a run reader, or a connection with its view `requests`.

    Raises:
        InputError: the question makes no sense.
        RunError: the run cannot be read.
    """
    question = Question(metric, statistic, rows, columns, str(phase), threshold)
    per_octave = _bins_per_octave(source, question)
    found = _ask(source, question, per_octave)
    placed = {(row, column): (value, n) for row, column, value, n in found if row is not None and column is not None}
    edges = _edges([row for row, _ in placed], per_octave)
    values = sorted({column for _, column in placed})
    n = sum(count for _, count in placed.values())
    return Grid(
        question=question,
        unit={"attainment": "ratio", "count": "requests"}.get(statistic, FIGURES[metric].unit),
        row_edges=tuple(edge for _, edge in edges),
        column_values=tuple(values),
        cells=tuple(
            tuple(_cell(statistic, *placed.get((row, column), (None, 0))) for column in values) for row, _ in edges[:-1]
        ),
        n=n,
        unplaced=sum(count for *_, count in found) - n,
    )


def _cell(statistic: str, value: float | None, n: int) -> Cell:
    if statistic == "count":
        return Cell(value=float(n), n=n, few=False)
    if statistic not in PERCENTILES:
        return Cell(value=value if n else None, n=n, few=n < SURE_SAMPLES)
    needs = sample_needs(PERCENTILES[statistic])
    return Cell(value=value if n >= needs.shown else None, n=n, few=n < needs.sure)


def _edges(bins: Iterable[int], per_octave: int) -> list[tuple[int, int]]:
    """(bin, its lowest whole number) from the first bin to the end of the last, without bins too narrow for one."""
    bins = list(bins)
    if not bins:
        return []
    lowest: dict[int, int] = {}
    for row in range(min(bins), max(bins) + 2):
        lowest[math.ceil(2 ** (row / per_octave))] = row  # of bins that begin alike, the last one is meant
    return sorted((row, edge) for edge, row in lowest.items())


def _bins_per_octave(source: Fetches | duckdb.DuckDBPyConnection, question: Question) -> int:
    """1 or 2, by the requests of the phase alone: all grids of a run have the same rows, whatever their metric."""
    sql = f"SELECT count(*) FROM requests WHERE TRUE{_of_phase(question)}"  # noqa: S608  a Question holds known names
    ((n,),) = _fetch(source, sql, {})
    return 2 if n >= HALF_OCTAVES_FROM else 1


def _of_phase(question: Question) -> str:
    return "" if question.phase == ALL_PHASES else f" AND phase = '{question.phase}'"


def _ask(source: Fetches | duckdb.DuckDBPyConnection, question: Question, per_octave: int) -> list[tuple[Any, ...]]:
    """(bin, column value, statistic, n) of each cell that has requests; bin k begins at 2^(k / per_octave)."""
    position = f"log2({question.rows}) * {per_octave}"
    # The greatest value of the phase closes the last bin instead of opening one of its own: 32k belongs to "up to 32k".
    # (Not up to 2, where a bin can hold no other whole number.)
    sql = f"""
        WITH top AS (SELECT max({position}) AS place FROM requests WHERE {question.rows} >= 1{_of_phase(question)}),
        final AS (SELECT greatest(ceil(place) - 1, least(floor(place), {per_octave})) AS last FROM top),
        chosen AS (
            SELECT {_chosen(question)} AS x, {question.columns} AS col,
                CASE WHEN {question.rows} >= 1 THEN least(floor({position}), last)::INTEGER END AS bin
            FROM requests, final WHERE x IS NOT NULL{_of_phase(question)}
        )
        SELECT bin, col, {_AGGREGATES[question.statistic]}, count(x) FROM chosen GROUP BY bin, col
    """  # noqa: S608  a Question holds names from tables only
    parameters = {} if question.threshold is None else {"threshold": question.threshold}
    return _fetch(source, sql, parameters)


def _fetch(
    source: Fetches | duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    if isinstance(source, duckdb.DuckDBPyConnection):
        return source.execute(sql, parameters).fetchall()
    return source.fetch(sql, parameters)


_AGGREGATES = {name: f"quantile_cont(x, {p})" for name, p in PERCENTILES.items()} | {
    "mean": "avg(x)",
    "max": "max(x)",
    "count": "NULL",
    "attainment": "avg(x)",
}


def _chosen(question: Question) -> str:
    """What counts of a request, as SQL; a request for which it is null is left out."""
    if question.statistic == "count":
        return "1"
    figure = FIGURES[question.metric]
    if question.statistic != "attainment":
        return f"CASE WHEN {OK} THEN {figure.sql} END"
    missed = " OR ".join(rule(question.metric, "$threshold") for rule in (gave_up, late_though_failed))
    return f"CASE WHEN {OK} THEN (({figure.sql}) <= $threshold)::INTEGER WHEN {missed} THEN 0 END"
