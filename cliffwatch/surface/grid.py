"""Latency over two or three dimensions of the traffic: the grid behind every heatmap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import duckdb
import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.records.conditions import OK
from cliffwatch.records.figures import FIGURES, gave_up, late_though_failed
from cliffwatch.records.schema import Phase
from cliffwatch.stats.clusters import WINDOWS
from cliffwatch.surface.bins import AUTO, FEW_VALUES, Axis, Bins, Key, Seen, choose, lay
from cliffwatch.surface.cells import EMPTY, STATISTICS, Array, Cell, measure
from cliffwatch.surface.dimensions import add_derived, dimension, rate_window_s

ALL_PHASES = "all"
SIDES = ("rows", "columns", "facet")
UNITS = {"attainment": "ratio", "count": "requests"}


@dataclass(frozen=True, slots=True)
class Question:
    """What a grid answers: a statistic of a metric, by rows and columns (and facets), over a phase.

    Attributes:
        metric: a name in `FIGURES`.
        statistic: one of `STATISTICS`.
        rows, columns, facet: different names in `DIMENSIONS`; a facet may be None.
        phase: a `Phase`, or `all`.
        threshold: for `attainment`, in the metric's unit; None for all others.
        row_bins, column_bins, facet_bins: `auto`, or what is forced (`bins.FORMS`).

    Raises:
        InputError: a name is not known, or `attainment` has no threshold (or another statistic has one).
    """

    metric: str
    statistic: str
    rows: str = "input_tokens"
    columns: str = "batch"
    phase: str = Phase.MEASURED.value
    threshold: float | None = None
    facet: str | None = None
    row_bins: str = AUTO
    column_bins: str = AUTO
    facet_bins: str = AUTO

    def __post_init__(self) -> None:
        allowed: dict[str, Iterable[str]] = {
            "metric": FIGURES,
            "statistic": STATISTICS,
            "phase": (*(phase.value for phase in Phase), ALL_PHASES),
        }
        for field, names in allowed.items():
            if (name := getattr(self, field)) not in names:
                raise InputError(f"unknown {field}", field=field, value=name, allowed=", ".join(names))
        for side, name in self.sides.items():
            dimension(name, side)
        if len(set(self.sides.values())) < len(self.sides):
            taken = ", ".join(self.sides.values())
            raise InputError("must be different dimensions", field=", ".join(self.sides), value=taken)
        if (self.statistic == "attainment") != (self.threshold is not None):
            raise InputError("goes with attainment, and only with it", field="threshold", value=self.threshold)
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise InputError("must be a finite number", field="threshold", value=self.threshold)

    @property
    def sides(self) -> dict[str, str]:
        """The dimension of each side that was asked for, by side."""
        return {side: name for side in SIDES if (name := getattr(self, side)) is not None}

    @property
    def unit(self) -> str:
        """Of the cells' values: the metric's, `ratio` for attainment, `requests` for count."""
        return UNITS.get(self.statistic, FIGURES[self.metric].unit)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of cells.

    Attributes:
        question: what was asked.
        rows, columns: the sides.
        cells: cells[r][c].
        n: requests in all cells.
        unplaced: requests with a value but without a row or column, such as an output length that is not known.
        facet: the value of the third dimension that this grid is of; None without one.
        notes: what to know of the source.
    """

    question: Question
    rows: Axis
    columns: Axis
    cells: tuple[tuple[Cell, ...], ...]
    n: int
    unplaced: int
    facet: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return self.question.unit


class Sessions(Protocol):
    """Anything that lends a connection with a view `requests`, such as a `RunReader`."""

    def session(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]: ...


Source = Sessions | duckdb.DuckDBPyConnection
Points = list[tuple[float, Array]]  # (axis value, values there)


class GridSource(Protocol):
    """Where grids come from: rows, or the histograms of an engine that a Prometheus scrapes."""

    def grids(self, question: Question) -> tuple[Grid, ...]:
        """One grid, or one a facet. Raises InputError, RunError, UnreachableError."""
        ...


@dataclass(frozen=True, slots=True)
class Layout:
    """How a run's requests fall into the cells of a question.

    Attributes:
        table: the table expression that has the dimensions.
        sides: dimension and bins of each side.
        condition: SQL that keeps the phase.
        first_ns, span_ns: when the first was due, and the time to the last, of the requests in the phase.
    """

    table: str
    sides: Mapping[str, tuple[str, Bins]]
    condition: str
    first_ns: int
    span_ns: int

    def place(self, side: str) -> str:
        """The bin of a row on a side, as SQL."""
        name, bins = self.sides[side]
        return bins.sql(dimension(name, side).sql)


class RowsSource:
    """Grids of the rows of a run (live or closed), or of foreign measurements behind a view `requests`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def grids(self, question: Question) -> tuple[Grid, ...]:
        """Percentiles, mean and maximum are of requests that ended `ok`. Attainment is the share that took at most
        `threshold`, of those and of the failed requests that are known to have taken longer, as docs/judgement.md
        counts them. `count` is of requests of any outcome.

        Raises:
            InputError: the bins asked for cannot be had.
            RunError: the run cannot be read.
        """
        found = samples(self._source, question)
        if question.facet is None:
            return (grid_of(question, found),)
        rows, columns, facets = found.axes
        return tuple(
            _grid(
                question,
                (rows, columns),
                {place[:2]: one for place, one in found.cells.items() if place[2] == number},
                found.unplaced,
                label,
            )
            for number, label in zip(facets.numbers, facets.labels, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Samples:
    """The values behind the cells of a question.

    Attributes:
        axes: rows, columns and, where there is one, facet.
        cells: by bin (one of the axis's `numbers`) on each axis: the values, and in which of `WINDOWS` equal windows of
            the run each was due. For attainment a value is 1 or 0.
        unplaced: values without a bin on some axis.
    """

    axes: tuple[Axis, ...]
    cells: Mapping[tuple[Key, ...], tuple[Array, Array]]
    unplaced: int

    def curve(self, column: Key) -> Points:
        """(where a row stands, its values) along the rows of a column, by its number; empty where rows are words."""
        rows = self.axes[0]
        return [
            (middle, self.cells[row, column][0])
            for row, middle in zip(rows.numbers, rows.middles or (), strict=rows.middles is not None)
            if (row, column) in self.cells
        ]


def samples(source: Source, question: Question) -> Samples:
    """The values of each cell; what counts is as in `RowsSource.grids`, and so are the errors."""
    with session(source) as connection:
        layout = lay_out(connection, question)
        found = list(_ask(connection, question, layout))
    cells = {}
    unplaced = 0
    for place, values, windows in found:
        known = tuple(key for key in place if key is not None)
        if len(known) == len(place):
            cells[known] = values, windows
        else:
            unplaced += len(values)
    axes = (
        lay(name, dimension(name, side), bins, (place[at] for place in cells), side)
        for at, (side, (name, bins)) in enumerate(layout.sides.items())
    )
    return Samples(tuple(axes), cells, unplaced)


def grid_of(question: Question, found: Samples) -> Grid:
    """The one grid of a question without a facet, of its samples."""
    return _grid(question, found.axes, found.cells, found.unplaced)


def heatmap(
    source: Source,
    metric: str,
    statistic: str,
    rows: str = "input_tokens",
    columns: str = "batch",
    phase: str = Phase.MEASURED.value,
    threshold: float | None = None,
    **bins: str,
) -> Grid:
    """The one grid of a question without a facet; arguments and errors as `Question` and `RowsSource.grids`.

    Args:
        source: a run reader, or a connection with its view `requests`.
        bins: `row_bins`, `column_bins`.
    """
    question = Question(metric, statistic, rows, columns, str(phase), threshold, **bins)
    (grid,) = RowsSource(source).grids(question)
    return grid


@contextmanager
def session(source: Source) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for a `with` block, whichever the source is; of a live run with the rows of one moment."""
    if isinstance(source, duckdb.DuckDBPyConnection):
        yield source
        return
    with source.session() as connection:
        connection.begin()
        yield connection


def lay_out(connection: duckdb.DuckDBPyConnection, question: Question) -> Layout:
    """Bins for each side, by all requests of the phase: the same for every metric. Raises InputError."""
    phase = "" if question.phase == ALL_PHASES else f" AND phase = '{question.phase}'"
    n, first_ns, last_ns = _one(
        connection,
        f"SELECT count(*), min(intended_ns), max(intended_ns) FROM requests WHERE TRUE{phase}",  # noqa: S608
    )
    span_ns = (last_ns or 0) - (first_ns or 0)
    window_s = rate_window_s(span_ns / 1e9)
    table = add_derived(connection, question.sides.values(), window_s)
    sides = {}
    for side, name in question.sides.items():
        field = f"{side.removesuffix('s')}_bins"
        seen = _look(connection, table, name, phase, n)
        sides[side] = name, choose(dimension(name, side), seen, getattr(question, field), field)
    return Layout(table, sides, f"TRUE{phase}", first_ns or 0, span_ns)


def _look(connection: duckdb.DuckDBPyConnection, table: str, name: str, phase: str, n: int) -> Seen:
    kind, sql = dimension(name, name).kind, dimension(name, name).sql
    if kind == "word":
        return Seen(n, None, None, None)
    origin = f"FROM {table} WHERE ({sql}) IS NOT NULL{phase}"
    least, greatest = _one(connection, f"SELECT min({sql}), max({sql}) {origin}")
    values = None
    if kind in {"length", "count"}:
        found = connection.execute(f"SELECT DISTINCT {sql} {origin} LIMIT {FEW_VALUES + 1}").fetchall()
        values = tuple(value for (value,) in found) if len(found) <= FEW_VALUES else None
    return Seen(n, least, greatest, values)


def _one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = connection.execute(sql).fetchall()[0]
    return found


def _ask(
    connection: duckdb.DuckDBPyConnection, question: Question, layout: Layout
) -> Iterable[tuple[tuple[Key | None, ...], Array, Array]]:
    """(place, values, windows of time) of each cell that has requests; the place is a bin a side."""
    window = f"((intended_ns - {layout.first_ns}) * {WINDOWS} // {layout.span_ns + 1})::UTINYINT"
    places = [f"{layout.place(side)} AS {side}" for side in layout.sides]
    sql = f"""
        SELECT {", ".join(layout.sides)}, list(x), list(_window) FROM (
            SELECT {", ".join(places)}, ({_chosen(question)})::DOUBLE AS x, {window} AS _window
            FROM {layout.table} WHERE {layout.condition}
        ) WHERE x IS NOT NULL GROUP BY {", ".join(layout.sides)}
    """  # noqa: S608  a Question holds names from tables only
    parameters = {} if question.threshold is None else {"threshold": question.threshold}
    for batch in connection.sql(sql, params=parameters).to_arrow_table().to_batches():
        *places_of, values, windows = batch.columns
        for at in range(batch.num_rows):
            yield (
                tuple(place[at].as_py() for place in places_of),
                values[at].values.to_numpy(),
                windows[at].values.to_numpy(),
            )


def _grid(
    question: Question,
    axes: tuple[Axis, ...],
    found: Mapping[tuple[Key, ...], tuple[Array, Array]],
    unplaced: int,
    facet: str | None = None,
) -> Grid:
    rows, columns = axes
    nothing = EMPTY, EMPTY.astype(np.uint8)
    return Grid(
        question=question,
        rows=rows,
        columns=columns,
        cells=tuple(
            tuple(measure(question.statistic, *found.get((row, column), nothing)) for column in columns.numbers)
            for row in rows.numbers
        ),
        n=sum(len(values) for values, _ in found.values()),
        unplaced=unplaced,
        facet=facet,
    )


def _chosen(question: Question) -> str:
    """What counts of a request, as SQL; a request for which it is null is left out."""
    if question.statistic == "count":
        return "1"
    figure = FIGURES[question.metric]
    if question.statistic != "attainment":
        return f"CASE WHEN {OK} THEN {figure.sql} END"
    missed = " OR ".join(rule(question.metric, "$threshold") for rule in (gave_up, late_though_failed))
    return f"CASE WHEN {OK} THEN (({figure.sql}) <= $threshold)::INTEGER WHEN {missed} THEN 0 END"
