"""From a cell of a grid to its requests, and from a request to its cell: a place is (time, replica, row, column)."""

from __future__ import annotations

from dataclasses import dataclass

from cliffwatch.errors import InputError
from cliffwatch.records.conditions import OK
from cliffwatch.records.figures import FIGURES
from cliffwatch.surface.bins import Bins, Key
from cliffwatch.surface.dimensions import dimension
from cliffwatch.surface.grid import Layout, Question, Source, lay_out, session

MAX_PAGE = 200
ORDERS = {
    "slowest": "metric DESC NULLS LAST, request_id",
    "fastest": "metric NULLS LAST, request_id",
    "time": "intended_ns, request_id",
}
_TOLD = ("request_id", "worker", "replica", "phase", "model", "cache", "batch", "input_tokens", "output_tokens",
         "outcome", "error", "ttft_s", "itl_s", "e2e_s")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A cell: the keys of its row and column (and facet), as the grid's axes have them, which stay as a run grows;
    within it a replica, and seconds into the run [from, to) at which requests were due; None: any."""

    row: str
    column: str
    facet: str | None = None
    replica: str | None = None
    from_s: float | None = None
    to_s: float | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """One request of a cell; times in seconds into the run, latencies in seconds, null where unknown. Never a prompt.

    `metric` is the question's, null for a request that does not count in its statistic.
    """

    time_s: float
    metric: float | None
    request_id: int
    worker: int
    replica: str | None
    phase: str
    model: str
    cache: str
    batch: int
    input_tokens: int
    output_tokens: int | None
    outcome: str
    error: str | None
    ttft_s: float | None
    itl_s: float | None
    e2e_s: float | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a cell's requests: `n` are in it, whatever their outcome, `counted` of them in its statistic's figure."""

    n: int
    counted: int
    requests: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Slow:
    """One of the slowest requests of a cell; times in seconds."""

    request_id: int
    time_s: float
    metric: float
    input_tokens: int
    output_tokens: int | None
    replica: str | None


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a request lies: seconds into the run, its replica, and the keys of its row, column and facet; null where
    it has none. `value` of each side is what the request has of that dimension."""

    time_s: float
    replica: str | None
    keys: dict[str, Key | None]
    values: dict[str, Key | None]
    phase: str


def requests_in(
    source: Source, question: Question, place: Place, *, order: str = "slowest", offset: int = 0, limit: int = 50
) -> Page:
    """The requests of a cell, a page of at most `MAX_PAGE`.

    Raises:
        InputError: a key is no row or column of the grid, the order is not one of `ORDERS`, or the page is too large.
        RunError: the run cannot be read.
    """
    if order not in ORDERS:
        raise InputError("unknown order", field="order", value=order, allowed=", ".join(ORDERS))
    if not (offset >= 0 and 1 <= limit <= MAX_PAGE):
        raise InputError("is no page", field="limit", value=f"{offset}, {limit}", allowed=f"1 to {MAX_PAGE} from 0 on")
    with session(source) as connection:
        layout = lay_out(connection, question)
        condition, parameters = _inside(layout, place)
        metric = f"CASE WHEN {OK} THEN {FIGURES[question.metric].sql} END"
        origin = f"FROM {layout.table} WHERE {layout.condition} AND {condition}"
        n, counted = connection.execute(f"SELECT count(*), count({metric}) {origin}", parameters).fetchall()[0]
        found = connection.execute(
            f"SELECT intended_ns / 1e9, {metric} AS metric, {', '.join(_TOLD)} {origin}"
            f" ORDER BY {ORDERS[order]} LIMIT {limit:d} OFFSET {offset:d}",
            parameters,
        ).fetchall()
    return Page(n, counted, tuple(Placed(*one) for one in found))


def slowest(source: Source, question: Question, each: int) -> dict[tuple[Key, Key], tuple[Slow, ...]]:
    """Up to `each` of the slowest requests that count in each cell, by the keys of its row and column.

    Raises:
        RunError: the run cannot be read.
    """
    with session(source) as connection:
        layout = lay_out(connection, question)
        found = connection.execute(
            f"""
            SELECT {layout.place("rows")} AS _row, {layout.place("columns")} AS _column, request_id,
                intended_ns / 1e9, {FIGURES[question.metric].sql} AS _metric, input_tokens, output_tokens, replica
            FROM {layout.table} WHERE {layout.condition} AND {OK} AND _row IS NOT NULL AND _column IS NOT NULL
                AND _metric IS NOT NULL
            QUALIFY row_number() OVER (PARTITION BY _row, _column ORDER BY _metric DESC, request_id) <= {each:d}
            ORDER BY _metric DESC, request_id
            """  # noqa: S608  our own names
        ).fetchall()
    cells: dict[tuple[Key, Key], tuple[Slow, ...]] = {}
    (_, rows), (_, columns) = layout.sides["rows"], layout.sides["columns"]
    for row, column, *told in found:
        key = rows.key(row), columns.key(column)
        cells[key] = (*cells.get(key, ()), Slow(*told))
    return cells


def whereabouts(source: Source, question: Question, request_id: int) -> Whereabouts:
    """The cell of a request. Raises InputError where no request has that id, RunError."""
    with session(source) as connection:
        layout = lay_out(connection, question)
        places = [layout.place(side) for side in layout.sides]
        values = [dimension(name, side).sql for side, (name, _) in layout.sides.items()]
        found = connection.execute(
            f"SELECT intended_ns / 1e9, replica, phase, {', '.join([*places, *values])} FROM {layout.table}"  # noqa: S608
            f" WHERE {layout.condition} AND request_id = ?",
            [request_id],
        ).fetchall()
    if not found:
        message = "no request of this phase has that id"
        raise InputError(message, field="request_id", value=request_id, allowed="ids as the cells list them")
    time_s, replica, phase, *rest = found[0]
    numbers, own = rest[: len(places)], rest[len(places) :]
    keys = {
        side: None if number is None else bins.key(number)
        for (side, (_, bins)), number in zip(layout.sides.items(), numbers, strict=True)
    }
    return Whereabouts(time_s, replica, keys, dict(zip(layout.sides, own, strict=True)), phase)


def _inside(layout: Layout, place: Place) -> tuple[str, dict[str, Key]]:
    """The condition that keeps the place's requests, and its parameters."""
    keys = {"rows": place.row, "columns": place.column, "facet": place.facet}
    conditions, parameters = [], dict[str, Key]()
    for side in layout.sides:
        conditions.append(f"({layout.place(side)}) = ${side}")
        parameters[side] = _number(layout, side, keys[side])
    for name, sql, value in (
        ("replica", "replica = $replica", place.replica),
        ("from_ns", "intended_ns >= $from_ns", _nanoseconds(place.from_s)),
        ("to_ns", "intended_ns < $to_ns", _nanoseconds(place.to_s)),
    ):
        if value is not None:
            conditions.append(sql)
            parameters[name] = value
    return " AND ".join(conditions), parameters


def _number(layout: Layout, side: str, key: str | None) -> Key:
    """What a side's key is to the SQL of its bins. Raises InputError."""
    name, bins = layout.sides[side]
    if key is None:
        raise InputError("is missing", field=side.removesuffix("s"), allowed=f"a key of {name}, as the grid has them")
    if dimension(name, side).kind == "word" and name != "worker":
        return key
    number = _bin(bins, key)
    if number is None:
        raise InputError(
            "is not in the grid", field=side.removesuffix("s"), value=key, allowed=f"a key of {name} in the grid"
        )
    return number


def _bin(bins: Bins, key: str) -> float | None:
    """The bin that begins there, or the value; None where there is none."""
    try:
        value = float(key)
        if bins.last is None:
            return value
        number = bins.number(value)
        return number if bins.edge(number) == value else None
    except (ValueError, OverflowError):
        return None


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)
