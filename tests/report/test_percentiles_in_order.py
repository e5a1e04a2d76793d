"""Whatever the rows: min <= P50 <= P90 <= P95 <= P99 <= max, in every table of percentiles, and bounds around each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from cliffwatch.compare.measure import measure
from cliffwatch.compare.metrics import choose
from cliffwatch.records.figures import view_columns
from cliffwatch.records.manifest import Manifest
from cliffwatch.records.parquet import table_of
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.groups import Grouping
from cliffwatch.report.plots import timeline
from cliffwatch.report.summary import Report, summarize
from cliffwatch.slo.quantiles import PERCENTILES
from cliffwatch.slo.spec import parse_slo
from services.slo.parameters import MetricParameters
from services.slo.views import percentiles
from tests.records.synthetic import make_manifest
from tests.slo.rows import refused, served

SLO = parse_slo("name: x\nobjectives: [{sli: ttft, threshold: 1s, target: 90%}]\n", source="slo.yaml")
FIGURES = ("ttft_s", "ttft_user_s", "itl_s", "tpot_s", "e2e_user_s", "output_rate", "max_gap_s", "send_lag_s")
# The three samples by which tools that round to two figures show a P99 above the maximum, and others.
SECONDS = st.sampled_from([0.386, 0.061, 0.062, 5.987, 1.237]) | st.floats(1e-9, 1e5)
REQUEST = st.tuples(SECONDS, SECONDS, st.floats(0, 10), st.integers(2, 9), st.sampled_from(["ok", "ok", "ok", "fail"]))
RUN = st.tuples(st.lists(REQUEST, min_size=1, max_size=12), st.sampled_from([1, 10, 40]))  # so often over


@dataclass(frozen=True)
class Memory:
    """Rows as a run folder's reader gives them, without the folder."""

    connection: duckdb.DuckDBPyConnection
    manifest: Manifest

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        yield self.connection


def reader_of(drawn: tuple[list[Any], int]) -> RunReader:
    requests, times = drawn
    rows = []
    for number, (ttft, itl, lag, tokens, end) in enumerate(requests * times):
        replica = f"pod-{number % 2}"
        if end == "ok":
            rows.append(served(number, ttft=ttft, itl=itl, lag=lag, tokens=tokens, replica=replica, tenant=replica))
        else:
            rows.append(refused(number, Outcome.HTTP_5XX, waited=lag, replica=replica, tenant=replica))
    manifest = make_manifest(replicas={"header": "x-pod"}, state="complete", load_s=len(rows), schedule_hash="a" * 64)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("stored", table_of(rows))
    connection.execute(f"CREATE TABLE requests AS SELECT {view_columns()} FROM stored")  # noqa: S608
    return cast("RunReader", Memory(connection, manifest))


def in_order(*values: float | None) -> None:
    known = [value for value in values if value is not None]
    assert all(low <= high for low, high in pairwise(known)), values


def check_report(report: Report) -> None:
    for one in report.figures:
        in_order(one.min, *(quantile.value for quantile in one.percentiles.values()), one.max)
        for quantile in one.percentiles.values():
            in_order(one.min, quantile.low, quantile.value, quantile.high, one.max)
    for group in report.groups:
        for latency in group.latencies.values():
            in_order(*(quantile.value for quantile in latency.values()))
    assert report.judgement is not None and report.replicas is not None
    for objective in report.judgement.objectives:
        in_order(*(quantile.value for quantile in objective.observed.values()))
    for replica in report.replicas.replicas:
        in_order(replica.ttft_p95.low, replica.ttft_p95.value, replica.ttft_p95.high)


@settings(max_examples=8, deadline=None)
@given(RUN)
def test_every_table_has_its_percentiles_in_order(drawn: tuple[list[Any], int]) -> None:
    reader = reader_of(drawn)
    check_report(summarize(reader, SLO, phase=Phase.MEASURED, by=Grouping.TENANT))
    for figure in FIGURES:
        answer = percentiles("x", reader, MetricParameters(metric=figure))
        in_order(answer.least, *(one.value for one in answer.percentiles), answer.greatest)
    compared = measure(reader, choose(["ttft", "itl", "e2e"]), None, open_loop=True)
    for short in ("ttft", "itl", "e2e"):
        estimates = [compared[f"{short}_{name}"].estimate for name in PERCENTILES]
        in_order(*(one.value for one in estimates if one is not None))
    with reader.session() as connection:
        for each in timeline(connection, "TTFT", "ttft_user_s", Phase.MEASURED).bins:
            in_order(each.p50.value, each.p95.value)
