"""Percentiles of an engine's histograms: only the edges around them are known, and above the last one not even both."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from cliffwatch.engines.catalog import engine
from cliffwatch.slo.live.asks import Ask, Reply
from cliffwatch.surface.cells import Cell
from cliffwatch.surface.engine_source import EngineSource
from cliffwatch.surface.grid import Question

START_S, END_S = 1_750_000_000, 1_750_000_060  # one bin


def cell(statistic: str, buckets: dict[str, int], threshold_s: float | None = None) -> Cell:
    """Of requests that Prometheus counted by bucket edge, cumulatively."""

    def series(values: dict[str, int]) -> bytes:
        result = [
            {"metric": {"model_name": "m", "le": le}, "values": [[END_S, str(value)]]} for le, value in values.items()
        ]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()

    def ask(asks: Sequence[Ask]) -> Sequence[Reply]:
        assert len(asks) == 3  # buckets, how many series have each, seconds in all
        return [series(buckets), series(dict.fromkeys(buckets, 1)), series({})]

    source = EngineSource(ask, engine("vllm"), {}, START_S, END_S)
    (grid,) = source.grids(Question("e2e_s", statistic, "time", "model", threshold=threshold_s))
    ((found,),) = grid.cells
    return found


def test_a_percentile_above_the_last_edge_has_no_upper_end() -> None:
    """90 of 100 within 30 s, 10 took 300 s, and the buckets end at 60 s: P99 is over 60 s, by how much nobody knows."""
    p99 = cell("p99", {"30": 90, "60": 90, "+Inf": 100})
    assert (p99.value, p99.low, p99.high) == (None, 60.0, None)


def test_all_above_the_last_edge_is_no_figure_at_that_edge() -> None:
    p50 = cell("p50", {"5": 0, "10": 0, "+Inf": 100})
    assert (p50.value, p50.low, p50.high) == (None, 10.0, None)


@pytest.mark.parametrize("statistic", ["p50", "p99"])
def test_a_percentile_within_a_bucket_is_that_bucket(statistic: str) -> None:
    """Every request took 0.26 s. Between the edges a quantile would be drawn at 0.4975 s for P99, 0.375 s for P50."""
    found = cell(statistic, {"0.1": 0, "0.25": 0, "0.5": 1000, "+Inf": 1000})
    assert (found.value, found.low, found.high) == (None, 0.25, 0.5)


@pytest.mark.parametrize(
    ("threshold_s", "value", "low", "high"),
    [(0.25, 0.9, None, None), (0.3, None, 0.9, 0.99), (0.5, 0.99, None, None), (2.0, None, 0.99, 1.0)],
)
def test_a_share_is_exact_on_an_edge_and_bounded_off_it(
    threshold_s: float, value: float | None, low: float | None, high: float | None
) -> None:
    """A straight line from 900 of 1000 at 0.25 s to 990 at 0.5 s would say 0.918 at 0.3 s."""
    found = cell("attainment", {"0.25": 900, "0.5": 990, "+Inf": 1000}, threshold_s)
    assert found.value == (None if value is None else pytest.approx(value))
    if value is None:
        assert (found.low, found.high) == (low, high)
