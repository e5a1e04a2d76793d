"""Concurrency, rate and time of a request, worked out by hand, and the bins that are chosen for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np
import pytest

from cliffwatch.records.figures import view_columns
from cliffwatch.records.parquet import table_of
from cliffwatch.records.schema import Outcome, RequestRow
from cliffwatch.surface.bins import Seen, choose
from cliffwatch.surface.dimensions import DIMENSIONS
from cliffwatch.surface.grid import Grid, Question, RowsSource, heatmap
from tests.records.synthetic import make_row

S = 1_000_000_000


def over(rows: Iterable[RequestRow]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("stored", table_of(list(rows)))
    connection.execute(f"CREATE VIEW requests AS SELECT {view_columns()} FROM stored")  # noqa: S608
    return connection


def flight(request_id: int, sent_s: float | None, ended_s: float | None, **changes: Any) -> RequestRow:
    sent = None if sent_s is None else round(sent_s * S)
    ended = None if ended_s is None else round(ended_s * S)
    return make_row(request_id, intended_ns=sent or 0, sent_ns=sent, ended_ns=ended, **changes)


def column(grid: Grid) -> dict[object, int]:
    return {key: grid.cells[0][c].n for c, key in enumerate(grid.columns.keys)}


def test_concurrency_counts_what_is_in_flight_at_the_send() -> None:
    """Sent at 0, 1, 2, 3, ended at 10, 2, 4, 9: the second ends as the third begins. So 1, 2, 2, 3 are in flight."""
    rows = [flight(0, 0, 10), flight(1, 1, 2), flight(2, 2, 4), flight(3, 3, 9)]
    assert column(heatmap(over(rows), "ttft_s", "count", columns="concurrency")) == {1: 1, 2: 2, 3: 1}


def test_requests_sent_together_see_each_other_and_those_of_unknown_end_count_for_none() -> None:
    rows = [flight(0, 1, 5), flight(1, 1, 5), flight(2, 2, None, outcome=Outcome.LOST), flight(3, None, None)]
    grid = heatmap(over(rows), "ttft_s", "count", columns="concurrency")
    assert column(grid) == {2: 2}
    assert (grid.n, grid.unplaced) == (2, 2)


def test_measurements_without_a_clock_have_neither_concurrency_nor_rate() -> None:
    """They are kept a nanosecond apart, in the order of their lines."""
    rows = [make_row(n, intended_ns=n + 1, sent_ns=n + 1, ended_ns=n + 1 + S) for n in range(5)]
    for name in ("concurrency", "rate"):
        grid = heatmap(over(rows), "ttft_s", "count", columns=name)
        assert (grid.n, grid.unplaced) == (0, 5)


def test_an_unknown_value_is_in_no_bin_however_they_are_laid() -> None:
    rows = [make_row(n, max_output_tokens=64, output_tokens=None if n < 2 else 50 * n) for n in range(6)]
    for bins in ("linear:100", "log", "values"):
        grid = heatmap(over(rows), "ttft_s", "count", rows="output_tokens", row_bins=bins)
        assert (grid.n, grid.unplaced) == (4, 2), bins


def test_concurrency_is_of_all_phases() -> None:
    rows = [flight(0, 0, 10, phase="warmup"), flight(1, 1, 2)]
    assert column(heatmap(over(rows), "ttft_s", "count", columns="concurrency")) == {2: 1}


def test_a_rate_is_of_the_window_before_and_unknown_until_one_is_full() -> None:
    """20 s, so a window of 2 s: one request a second, then five a second from 10 s on."""
    times = [*np.arange(0, 10, 1.0), *np.arange(10, 20.01, 0.2)]
    rows = [flight(i, t, t + 0.5) for i, t in enumerate(times)]
    grid = heatmap(over(rows), "ttft_s", "count", columns="rate", column_bins="values")
    assert grid.unplaced == 2  # at 0 s and 1 s
    found = column(grid)
    assert found[1.0] == 9  # at 2 s to 9 s, and at 10 s, where the window holds 9 s and 10 s
    assert found[5.0] == 42  # from 11.8 s on, where a window holds ten
    assert sum(found.values()) == len(times) - 2


def test_time_is_binned_in_usual_steps() -> None:
    rows = [flight(i, i / 10, i / 10 + 1) for i in range(600)]  # a minute
    grid = heatmap(over(rows), "ttft_s", "count", columns="time")
    assert grid.columns.edges == tuple(range(0, 65, 5))
    assert set(column(grid).values()) == {50}


@pytest.mark.parametrize(
    ("name", "least", "greatest", "scale", "step"),
    [
        ("concurrency", 1, 300, "log", 1),
        ("concurrency", 100, 400, "linear", 50),  # 300 / 12 = 25 is not over 20, so 50
        ("rate", 0.5, 7.9, "linear", 1),  # 7.4 / 12 = 0.62
        ("rate", 0.5, 8.0, "log", 1),
        ("time", 0, 3600, "linear", 300),
        ("input_tokens", 1, 100, "log", 1),
    ],
)
def test_bins_are_chosen_by_the_spread(name: str, least: float, greatest: float, scale: str, step: float) -> None:
    bins = choose(DIMENSIONS[name], Seen(1000, least, greatest, None))
    assert (bins.scale, bins.step) == (scale, step)
    assert bins.why


def test_forced_bins_are_as_asked() -> None:
    rows = [make_row(i, input_tokens=1000 * (i + 1)) for i in range(10)]
    grid = heatmap(over(rows), "ttft_s", "count", row_bins="linear:2500")
    assert grid.rows.edges == (0, 2500, 5000, 7500, 10_000)
    assert [line[0].n for line in grid.cells] == [2, 2, 3, 3]  # 10,000 closes the last row
    every = heatmap(over(rows), "ttft_s", "count", row_bins="values")
    assert every.rows.keys == tuple(range(1000, 10_001, 1000))


def test_facets_share_their_sides_and_part_the_requests() -> None:
    rows = [make_row(i, cache="prefix" if i % 3 else "none", batch=1 + i % 2) for i in range(12)]
    none, prefix = RowsSource(over(rows)).grids(Question("ttft_s", "count", facet="cache"))
    assert [(one.facet, one.n) for one in (none, prefix)] == [("none", 4), ("prefix", 8)]
    assert (none.rows, none.columns) == (prefix.rows, prefix.columns)
    assert [cell.n for cell in none.cells[0]] == [2, 2]
