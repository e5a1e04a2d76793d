"""Intervals of percentiles through DuckDB against the same arithmetic on numpy arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome
from cliffwatch.report.intervals import share_inflation
from cliffwatch.report.summary import build
from cliffwatch.slo.quantiles import PERCENTILES
from cliffwatch.stats.clusters import WINDOWS, inflation
from cliffwatch.stats.order import order_ranks
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served
from tests.stats.queueing import queue


def test_they_are_the_order_statistics_of_the_rows(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3000)
    figure = next(one for one in build(run.dir).figures if one.figure == "ttft_s")
    table = run.table.filter(pc.and_(pc.equal(run.table["outcome"], "ok"), pc.equal(run.table["phase"], "measured")))
    due = table["intended_ns"].to_numpy()
    values = (table["first_token_ns"].to_numpy() - table["sent_ns"].to_numpy()) / 1e9
    place = np.minimum((due - due[0]) * WINDOWS // (due[-1] - due[0] + 1), WINDOWS - 1)
    for name, p in PERCENTILES.items():
        hits = np.bincount(place, values <= np.quantile(values, p), WINDOWS)
        factor = inflation(hits, np.bincount(place, minlength=WINDOWS))
        low, high = order_ranks(len(values), p, inflation=factor).pair or (0, 0)
        assert figure.percentiles[name].low == pytest.approx(np.sort(values)[low - 1], abs=1e-12)
        assert figure.percentiles[name].high == pytest.approx(np.sort(values)[high - 1], abs=1e-12)


def test_a_sample_too_small_has_a_percentile_and_no_interval(tmp_path: Path) -> None:
    percentiles = (
        build(run_of(tmp_path / "run", [served(n, ttft=0.1 + n / 1000) for n in range(71)]).dir).figures[0].percentiles
    )
    assert percentiles["p50"].low is not None
    assert percentiles["p95"].value is not None
    assert (percentiles["p95"].low, percentiles["p95"].high) == (None, None)
    assert (percentiles["p99"].value, percentiles["p99"].low) == (None, None)


def test_no_request_at_all_and_requests_at_one_instant(tmp_path: Path) -> None:
    empty = build(run_of(tmp_path / "empty", [refused(n, Outcome.CONNECT) for n in range(5)]).dir)
    assert {one.percentiles["p50"].low for one in empty.figures} == {None}
    rows = [served(n, intended_ns=0, sent_ns=0, first_token_ns=100_000_000) for n in range(80)]
    at_once = build(run_of(tmp_path / "once", rows).dir).figures[0].percentiles["p50"]
    assert at_once.low == at_once.value == at_once.high


def test_a_queue_widens_them(tmp_path: Path) -> None:
    times, waits = queue(np.random.default_rng(1), 2000, 0.8)
    rows = [
        served(n, ttft=float(wait), intended_ns=int(time * 1e9), sent_ns=int(time * 1e9),
               first_token_ns=int((time + wait) * 1e9))
        for n, (time, wait) in enumerate(zip(times, waits, strict=True))
    ]  # fmt: skip
    reader: RunReader = run_of(tmp_path / "run", rows)
    with reader.session() as connection:
        (factor,) = share_inflation(connection, [("ttft_s <= 2.8", "ttft_s")], "TRUE")
    assert factor > 5
