"""A grid of an engine's histograms on a real Prometheus: exact counts and means, percentiles as bucket edges only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.engines.catalog import engine
from cliffwatch.errors import InputError
from cliffwatch.surface.engine_source import EngineSource
from cliffwatch.surface.grid import Grid, Question
from tests.servers.history import prometheus_with

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

START_S, STEP_S, SCRAPES = 1_750_000_020, 15, 60  # a quarter of an hour
# Every 15 s: 6 up to 0.1 s, 6 more up to 0.25 s, 3 above: 15 requests of 3 s in all. Model b has half of that, and one
# of its two engines does not have the edge 0.25.
GROWTH = {"0.1": 6, "0.25": 12, "+Inf": 15}
NAME = "vllm:time_to_first_token_seconds"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineSource]:
    past: dict[str, list[float]] = {}
    for model, each in (("a", 1.0), ("b", 0.5)):
        for le, grown in GROWTH.items():
            labels = f'model_name="{model}",engine="0"'
            past[f'{NAME}_bucket{{le="{le}",{labels}}}'] = [grown * each * at for at in range(SCRAPES)]
        past[f'{NAME}_sum{{model_name="{model}",engine="0"}}'] = [3 * each * at for at in range(SCRAPES)]
    for le, grown in (("0.1", 1), ("+Inf", 1)):
        past[f'{NAME}_bucket{{le="{le}",model_name="b",engine="1"}}'] = [float(grown * at) for at in range(SCRAPES)]
    with prometheus_with(tmp_path_factory.mktemp("grid"), past, start_s=START_S, step_s=STEP_S) as server:
        yield EngineSource(Prometheus(server.url).ask_all, engine("vllm"), {}, START_S + 180, START_S + 780)


def grid(source: EngineSource, statistic: str, columns: str = "model", threshold: float | None = None) -> Grid:
    (found,) = source.grids(Question("ttft_s", statistic, "time", columns, threshold=threshold))
    return found


def test_counts_and_means_are_the_counters(source: EngineSource) -> None:
    counts = grid(source, "count")
    assert (counts.rows.keys, counts.columns.keys) == (tuple(60 * i for i in range(10)), ("a", "b"))
    assert {cell.n for row in counts.cells for cell in row[:1]} == {60}
    assert {row[1].n for row in counts.cells} == {34}  # 30 of the one engine, 4 of the other
    assert {round(row[0].value or 0, 9) for row in grid(source, "mean").cells} == {0.2}


def test_percentiles_are_the_edges_around_them_and_no_value(source: EngineSource) -> None:
    median, p90 = grid(source, "p50").cells[3], grid(source, "p90").cells[3]
    assert (median[0].value, median[0].low, median[0].high) == (None, 0.1, 0.25)  # 24 of 60 up to 0.1, 48 up to 0.25
    assert (p90[0].value, p90[0].low, p90[0].high) == (None, 0.25, None)
    assert (median[1].low, median[1].high) == (0.1, None)  # 16 of 34 up to 0.1; not all of b have 0.25
    assert (grid(source, "p99").cells[3][0].low, grid(source, "p99").cells[3][0].few) == (None, True)  # needs 100


def test_a_share_is_exact_at_an_edge_and_bounded_between(source: EngineSource) -> None:
    at, between = (grid(source, "attainment", threshold=one).cells[3][0] for one in (0.1, 0.2))
    assert at.value == pytest.approx(0.4)
    assert between.value is None
    assert (between.low, between.high) == (pytest.approx(0.4), pytest.approx(0.8))


def test_other_columns_are_other_labels_and_what_cannot_be_told_is_said(source: EngineSource) -> None:
    assert grid(source, "count", "replica").columns.keys == ("0", "1")
    for question, field in (
        (Question("ttft_s", "p50"), "rows, facet"),
        (Question("ttft_s", "p50", "time", "cache"), "columns"),
        (Question("ttft_s", "max", "time", "model"), "statistic"),
        (Question("max_gap_s", "p50", "time", "model"), "metric"),
    ):
        with pytest.raises(InputError) as caught:
            source.grids(question)
        assert caught.value.field == field
