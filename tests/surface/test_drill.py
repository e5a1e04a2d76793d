"""From cells to requests and back: every request is in the cell that counts it, by an independent reading of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.reader import RunReader
from cliffwatch.surface.drill import MAX_PAGE, Place, requests_in, slowest, whereabouts
from cliffwatch.surface.grid import Question, RowsSource
from tests.records.synthetic import SyntheticRun, make_run

SIDES = [("input_tokens", "batch"), ("output_tokens", "cache"), ("time", "concurrency"), ("rate", "worker")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return make_run(tmp_path_factory.mktemp("drill") / "run", 600, failures=0.1)


@pytest.mark.parametrize(("rows", "columns"), SIDES)
def test_there_and_back(run: SyntheticRun, rows: str, columns: str) -> None:
    reader, question = RunReader(run.dir), Question("ttft_s", "count", rows, columns)
    (grid,) = RowsSource(reader).grids(question)
    seen = 0
    for r, row in enumerate(grid.rows.keys):
        for c, key in enumerate(grid.columns.keys):
            if not grid.cells[r][c].n:
                continue
            page = requests_in(reader, question, Place(str(row), str(key)), limit=MAX_PAGE)
            assert page.n == grid.cells[r][c].n
            found = whereabouts(reader, question, page.requests[-1].request_id)
            assert (found.keys["rows"], found.keys["columns"]) == (row, key)
            seen += page.n
    assert seen == grid.n > 0


def test_a_cells_requests_are_those_of_the_rows(run: SyntheticRun) -> None:
    table = run.table
    inside = (
        (table["input_tokens"].to_numpy() >= 2048) & (table["input_tokens"].to_numpy() < 4096)
        & (table["batch"].to_numpy() == 2) & (np.array(table["phase"].to_pylist()) == "measured")
    )  # fmt: skip
    page = requests_in(RunReader(run.dir), Question("ttft_s", "p95"), Place("2048", "2"), order="time", limit=MAX_PAGE)
    assert [one.request_id for one in page.requests] == table["request_id"].to_numpy()[inside].tolist()
    assert page.counted == sum(one == "ok" for one in np.array(table["outcome"].to_pylist())[inside])
    failed = next(one for one in page.requests if one.outcome != "ok")
    assert (failed.metric, failed.error) == (None, "made to fail")


def test_pages_go_on_where_the_last_one_ended_the_slowest_first(run: SyntheticRun) -> None:
    reader, question, place = RunReader(run.dir), Question("ttft_s", "p95"), Place("2048", "2")
    whole = requests_in(reader, question, place, limit=MAX_PAGE).requests
    known = [one.metric for one in whole if one.metric is not None]
    assert known == sorted(known, reverse=True) and len(known) > 10
    assert requests_in(reader, question, place, offset=3, limit=4).requests == whole[3:7]


def test_a_place_may_be_a_time_and_a_replica_of_a_cell(run: SyntheticRun) -> None:
    reader, question = RunReader(run.dir), Question("ttft_s", "p95")
    whole = requests_in(reader, question, Place("2048", "2"), order="time", limit=MAX_PAGE).requests
    middle_s = whole[len(whole) // 2].time_s
    later = requests_in(reader, question, Place("2048", "2", from_s=middle_s), order="time", limit=MAX_PAGE)
    assert later.requests == whole[len(whole) // 2 :]
    assert requests_in(reader, question, Place("2048", "2", replica="nobody")).n == 0


@pytest.mark.parametrize(
    ("place", "options", "field"),
    [
        (Place("2000", "2"), {}, "row"),
        (Place("2048", "two"), {}, "column"),
        (Place("nan", "2"), {}, "row"),
        (Place("2048", "2"), {"limit": 0}, "limit"),
        (Place("2048", "2"), {"limit": MAX_PAGE + 1}, "limit"),
        (Place("2048", "2"), {"offset": -1}, "limit"),
        (Place("2048", "2"), {"order": "1; DROP VIEW requests"}, "order"),
    ],
)
def test_what_is_no_cell_or_page_is_said(run: SyntheticRun, place: Place, options: dict[str, int], field: str) -> None:
    with pytest.raises(InputError) as caught:
        requests_in(RunReader(run.dir), Question("ttft_s", "p95"), place, **options)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_an_id_that_is_not_there_is_said(run: SyntheticRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no request"):
        whereabouts(RunReader(run.dir), Question("ttft_s", "p95"), 10**12)


def test_the_slowest_of_each_cell_are_the_first_of_its_list(run: SyntheticRun) -> None:
    reader, question = RunReader(run.dir), Question("ttft_s", "p95")
    found = slowest(reader, question, 3)
    (grid,) = RowsSource(reader).grids(question)
    assert len(found) == sum(cell.n > 0 for line in grid.cells for cell in line)
    for (row, column), told in found.items():
        listed = requests_in(reader, question, Place(str(row), str(column)), limit=3).requests
        assert [one.request_id for one in told] == [one.request_id for one in listed if one.metric is not None]
