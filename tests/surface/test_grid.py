"""The heatmap grid against the same numbers worked out with numpy, and its rules for small and missing samples."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.records.figures import view_columns
from cliffwatch.records.files import final_path
from cliffwatch.records.folder import create_run
from cliffwatch.records.manifest import RunState
from cliffwatch.records.parquet import table_of, write_shard
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.surface.bins import HALF_OCTAVES_FROM
from cliffwatch.surface.grid import Grid, heatmap
from tests.records.synthetic import SyntheticRun, make_manifest, make_row, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SyntheticRun:
    return make_run(tmp_path_factory.mktemp("runs") / "run", 20_000, failures=0.05)


def reader_of(folder: Path, *rows: RequestRow) -> RunReader:
    create_run(folder, make_manifest(), "name: x\n")
    write_shard(final_path(folder, 0), iter([table_of(rows)]), {})
    return RunReader(folder)


@pytest.mark.parametrize("statistic", ["p50", "p90", "p95", "p99", "mean", "max"])
def test_cells_equal_numpy(run: SyntheticRun, statistic: str) -> None:
    table = run.table.filter((pc.field("phase") == "measured") & (pc.field("outcome") == "ok"))
    tokens, batch = table["input_tokens"].to_numpy(), table["batch"].to_numpy()
    ttft = (table["first_token_ns"].to_numpy() - table["sent_ns"].to_numpy()) / 1e9
    grid = heatmap(RunReader(run.dir), "ttft_s", statistic)
    assert (grid.n, grid.unplaced, grid.unit) == (len(ttft), 0, "s")
    for r, (low, high) in enumerate(pairwise(grid.rows.edges)):
        for c, value in enumerate(grid.columns.keys):
            last = r == len(grid.rows.edges) - 2
            inside = (tokens >= low) & ((tokens <= high) if last else (tokens < high)) & (batch == value)
            cell, sample = grid.cells[r][c], ttft[inside]
            assert cell.n == sample.size
            if cell.value is not None:
                expected = {"mean": np.mean, "max": np.max}.get(statistic)
                wanted = expected(sample) if expected else np.quantile(sample, int(statistic[1:]) / 100)
                assert cell.value == pytest.approx(wanted, rel=1e-9)


def counts_of(lengths: list[int], copies: int, row_bins: str = "auto") -> Grid:
    """The grid of `copies` requests of each length."""
    table = table_of([make_row(i, input_tokens=length) for i, length in enumerate(lengths)])
    with duckdb.connect() as connection:
        connection.register("stored", table)
        connection.execute(
            f"CREATE VIEW requests AS SELECT {view_columns()} FROM stored, range({copies})"  # noqa: S608
        )
        return heatmap(connection, "ttft_s", "count", row_bins=row_bins)


LENGTHS = [1024, 1448, 1449, 2047, 2048, 4096]


def test_edges_are_octaves_with_the_greatest_value_in_the_last_bin() -> None:
    grid = counts_of(LENGTHS, 1)
    assert grid.rows.edges == (1024, 2048, 4096)
    assert [row[0].n for row in grid.cells] == [4, 2]


def test_edges_are_half_octaves_where_the_run_has_requests_for_them() -> None:
    grid = counts_of(LENGTHS, 1000, "log:2")
    # 2^10.5 = 1448.15 and 2^11.5 = 2896.31, so the first whole numbers of those bins are 1449 and 2897.
    assert grid.rows.edges == (1024, 1449, 2048, 2897, 4096)
    assert [row[0].n for row in grid.cells] == [2000, 2000, 1000, 1000]


def test_rows_become_finer_at_a_stated_number_of_requests() -> None:
    lengths = list(range(1024, 2024, 50))
    assert len(counts_of(lengths, HALF_OCTAVES_FROM // 20 - 1).cells) == 1
    assert len(counts_of(lengths, HALF_OCTAVES_FROM // 20).cells) == 2


def test_a_few_lengths_that_repeat_are_rows_as_they_are() -> None:
    """32k is no row with 16k then; the same lengths once each, or a seventeenth one, are binned."""
    lengths = [512 * 2**k for k in range(7)]
    grid = counts_of(lengths, 2)
    assert (grid.rows.scale, grid.rows.keys, grid.rows.edges) == ("values", tuple(lengths), ())
    assert grid.rows.labels == ("512", "1k", "2k", "4k", "8k", "16k", "32k")
    assert grid.rows.spans[0] == (512, 513)
    assert counts_of(lengths, 1).rows.scale == "log"
    assert counts_of([*lengths, *range(600, 610)], 2).rows.scale == "log"


def test_requests_of_another_phase_make_no_rows_finer(tmp_path: Path) -> None:
    rows = HALF_OCTAVES_FROM + 20  # 1 % of them are warm-up, so that too few are judged
    reader = RunReader(make_run(tmp_path / "run", rows, gaps=False).dir)
    every, judged = (heatmap(reader, "ttft_s", "count", phase=phase) for phase in ("all", "measured"))
    assert len(every.rows.edges) > len(judged.rows.edges)
    assert set(judged.rows.edges[1:-1]) < set(every.rows.edges)


def test_a_longer_prompt_of_another_phase_gives_the_longest_no_row_of_its_own(tmp_path: Path) -> None:
    judged = [make_row(i, input_tokens=length) for i, length in enumerate([16_384, 20_000, 32_768])]
    reader = reader_of(tmp_path / "run", *judged, make_row(9, input_tokens=65_536, phase=Phase.WARMUP))
    measured = heatmap(reader, "ttft_s", "count")
    assert measured.rows.edges == (16_384, 32_768)
    assert [row[0].n for row in measured.cells] == [3]
    every = heatmap(reader, "ttft_s", "count", phase="all")  # here something is longer, so 32k begins a row
    assert every.rows.edges == (16_384, 32_768, 65_536)
    assert [row[0].n for row in every.cells] == [2, 2]


@pytest.mark.parametrize(
    ("tokens", "octave", "half"),
    [
        (1, (1, 2), (1, 2)),
        (2, (2, 4), (2, 3)),
        (3, (2, 4), (3, 4)),
        (5, (4, 8), (4, 6)),
        (2048, (1024, 2048), (1449, 2048)),
    ],
)
def test_one_length_is_one_row(tokens: int, octave: tuple[int, int], half: tuple[int, int]) -> None:
    for copies, edges in ((1, octave), (HALF_OCTAVES_FROM, half)):
        grid = counts_of([tokens], copies)
        assert grid.rows.edges == edges
        assert [row[0].n for row in grid.cells] == [copies]


@pytest.mark.parametrize("bins", ["log", "log:2"])
@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(1, 50_000), min_size=1, max_size=20))
def test_every_request_is_in_the_row_that_its_edges_say(bins: str, lengths: list[int]) -> None:
    grid = counts_of(lengths, 3, bins)
    edges = grid.rows.edges
    last = len(grid.cells) - 1
    for r, row in enumerate(grid.cells):
        inside = [x for x in lengths if edges[r] <= x < edges[r + 1] or (r == last and x == edges[r + 1])]
        assert row[0].n == len(inside) * 3
    assert grid.n == len(lengths) * 3
    assert all(low < high for low, high in pairwise(edges))


def test_small_samples_are_marked_and_smaller_ones_not_shown(tmp_path: Path) -> None:
    counts = {1: 19, 2: 20, 4: 200}
    rows = [make_row(1000 * batch + i, batch=batch) for batch, count in counts.items() for i in range(count)]
    rows.append(make_row(9999, batch=16, input_tokens=4000))
    grid = heatmap(reader_of(tmp_path / "run", *rows), "ttft_s", "p95")
    first = grid.cells[0]
    assert [(cell.value is None, cell.n, cell.few) for cell in first] == [
        (True, 19, True),
        (False, 20, True),
        (False, 200, False),
        (True, 0, True),
    ]


def test_failures_count_but_have_no_latency(tmp_path: Path) -> None:
    bad = {"outcome": Outcome.TRUNCATED, "output_tokens": None}
    reader = reader_of(tmp_path / "run", make_row(0), make_row(1, **bad), make_row(2, phase=Phase.WARMUP))
    assert heatmap(reader, "ttft_s", "mean").n == 1
    assert heatmap(reader, "ttft_s", "count").n == 2
    assert heatmap(reader, "ttft_s", "count", phase="all").n == 3
    assert heatmap(reader, "ttft_s", "count", phase="warmup").n == 1
    assert heatmap(reader, "ttft_s", "count", rows="output_tokens").unplaced == 1


def test_attainment_counts_failures_that_are_known_to_be_late(tmp_path: Path) -> None:
    """TTFT threshold 1 s: 50 ms good, 2 s bad, timed out after 3 s bad, timed out after 0.5 s says nothing.

    Broken off after a first token at 2 s: bad; at 50 ms: says nothing.
    """
    sent = 1_000_000

    def gave_up(i: int, after_s: float) -> RequestRow:
        never = dict.fromkeys(("first_token_ns", "first_answer_ns", "last_token_ns", "itl_s", "output_tokens"))
        ended = sent + int(after_s * 1e9)
        return make_row(i, outcome=Outcome.TIMEOUT_FIRST_TOKEN, sent_ns=sent, ended_ns=ended, **never)

    reader = reader_of(
        tmp_path / "run",
        make_row(0, sent_ns=sent, first_token_ns=sent + 50_000_000),
        make_row(1, sent_ns=sent, first_token_ns=sent + 2_000_000_000),
        gave_up(2, 3.0),
        gave_up(3, 0.5),
        make_row(4, outcome=Outcome.TRUNCATED, sent_ns=sent, first_token_ns=sent + 2_000_000_000),
        make_row(5, outcome=Outcome.TRUNCATED, sent_ns=sent, first_token_ns=sent + 50_000_000),
    )
    grid = heatmap(reader, "ttft_s", "attainment", threshold=1.0)
    assert grid.unit == "ratio"
    assert grid.cells[0][0].n == 4
    assert grid.cells[0][0].value == pytest.approx(1 / 4)


def test_columns_may_be_words(run: SyntheticRun) -> None:
    grid = heatmap(RunReader(run.dir), "itl_s", "p50", columns="cache")
    assert grid.columns.keys == ("none", "prefix")


def test_a_run_without_rows_is_an_empty_grid(tmp_path: Path) -> None:
    live = make_run(tmp_path / "run", 0, state=RunState.RUNNING)
    grid = heatmap(RunReader(live.dir), "ttft_s", "p95")
    assert (grid.rows.edges, grid.columns.keys, grid.cells, grid.n) == ((), (), (), 0)


def test_takes_a_connection_too(run: SyntheticRun) -> None:
    reader = RunReader(run.dir)
    with reader.connect() as connection:
        assert heatmap(connection, "ttft_s", "p95") == heatmap(reader, "ttft_s", "p95")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metric": "ttft"}, "metric"),
        ({"metric": "1; DROP VIEW requests"}, "metric"),
        ({"statistic": "p42"}, "statistic"),
        ({"rows": "batch"}, "rows, columns"),
        ({"row_bins": "octaves"}, "row_bins"),
        ({"row_bins": "log:0"}, "row_bins"),
        ({"row_bins": "linear:nan"}, "row_bins"),
        ({"row_bins": "linear:1"}, "row_bins"),  # thousands of rows
        ({"columns": "cache", "column_bins": "log"}, "column_bins"),
        ({"columns": "outcome"}, "columns"),
        ({"phase": "hot"}, "phase"),
        ({"threshold": 1.0}, "threshold"),
        ({"statistic": "attainment"}, "threshold"),
        ({"statistic": "attainment", "threshold": float("nan")}, "threshold"),
    ],
)
def test_bad_questions_name_what_is_wrong(run: SyntheticRun, change: dict[str, object], field: str) -> None:
    arguments: dict[str, object] = {"metric": "ttft_s", "statistic": "p95"} | change
    with pytest.raises(InputError) as caught:
        ask(run, **arguments)
    assert caught.value.field == field


def ask(run: SyntheticRun, **arguments: object) -> Grid:
    return heatmap(RunReader(run.dir), **arguments)  # type: ignore[arg-type]
