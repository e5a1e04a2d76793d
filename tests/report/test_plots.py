"""Plots: binned, bounded, and true to the rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.plots import (
    MAX_DISTRIBUTION_BINS,
    MAX_TIME_BINS,
    distribution,
    latency_heatmap,
    mostly_known,
    timeline,
)
from cliffwatch.slo.judge import judge
from cliffwatch.slo.spec import parse_slo
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served

MEASURED = Phase.MEASURED


def test_every_success_is_in_one_bin_of_the_distribution(tmp_path: Path) -> None:
    spread = [1e-7, 1e-5, 0.001, 0.0999, 0.1, 0.1001, 3.0, 500.0]
    reader = run_of(
        tmp_path / "run", [served(n, ttft=ttft) for n, ttft in enumerate(spread)] + [refused(9, Outcome.LOST)]
    )
    result = distribution(reader.connect(), "TTFT", "ttft_s", MEASURED)
    assert result.n == sum(result.counts) == len(spread)
    assert len(result.edges) == len(result.counts) + 1 <= MAX_DISTRIBUTION_BINS
    assert result.edges[0] <= 1e-6
    assert result.edges[-1] > 500
    for low, high, count in zip(result.edges, result.edges[1:], result.counts, strict=False):
        assert count == sum(low <= max(1e-6, ttft) < high for ttft in spread)


def test_bins_are_no_finer_than_the_samples_can_fill(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 400, gaps=False)
    result = distribution(RunReader(run.dir).connect(), "TTFT", "ttft_s", MEASURED)
    assert 8 <= len(result.counts) <= 24


@pytest.mark.parametrize(("n", "known"), [(1, False), (40, True)])
def test_a_heatmap_of_thin_cells_is_known_as_such(tmp_path: Path, n: int, known: bool) -> None:
    reader = run_of(tmp_path / "run", [served(number) for number in range(n)])
    assert mostly_known(latency_heatmap(reader.connect(), "TTFT", "ttft_s", "p95", MEASURED, ())) is known


def test_nothing_to_plot_is_empty(tmp_path: Path) -> None:
    reader = run_of(tmp_path / "run", [])
    assert distribution(reader.connect(), "TTFT", "ttft_s", MEASURED).counts == ()
    assert timeline(reader.connect(), "TTFT", "ttft_s", MEASURED).bins == ()
    assert latency_heatmap(reader.connect(), "TTFT", "ttft_s", "p95", MEASURED, ()).cells == ()


def test_a_gap_in_the_traffic_is_seen(tmp_path: Path) -> None:
    rows = [served(number, ttft=0.2) for number in range(100)] + [
        served(number, ttft=0.4) for number in range(300, 400)
    ]
    rows += [refused(1000, Outcome.HTTP_5XX, intended_ns=350_000_000_000)]
    result = timeline(run_of(tmp_path / "run", rows).connect(), "TTFT", "ttft_s", MEASURED)
    assert sum(one.n for one in result.bins) == 201
    assert sum(one.failed for one in result.bins) == 1
    starts = [one.start_s for one in result.bins]
    assert all(second - first == pytest.approx(result.bin_s) for first, second in pairwise(starts))
    quiet = [one for one in result.bins if one.n == 0]
    assert quiet
    assert all(one.p50.value is None for one in quiet)
    assert result.bins[0].p50.value == pytest.approx(0.2)
    assert result.bins[-1].p50.value == pytest.approx(0.4)


@pytest.mark.parametrize(("n", "rate"), [(1, 1.0), (50, 1e-5), (20_000, 1000.0), (20_000, 0.01)])
def test_time_bins_are_bounded(tmp_path: Path, n: int, rate: float) -> None:
    run = make_run(tmp_path / "run", n, rate=rate, gaps=False)
    result = timeline(RunReader(run.dir).connect(), "TTFT", "ttft_s", None)
    assert 1 <= len(result.bins) <= MAX_TIME_BINS + 1
    assert sum(one.n for one in result.bins) == n


def test_heatmap_rows_know_the_strictest_objective_of_all_their_lengths(tmp_path: Path) -> None:
    rows = [served(number, input_tokens=tokens) for number, tokens in enumerate([1024, 2048, 4096, 8192, 16384, 32768])]
    slo = parse_slo(
        "name: x\nobjectives:\n"
        "  - {sli: ttft, threshold: 9s, target: 95%}\n"
        "  - {sli: ttft, threshold: 1s, target: 95%, input_tokens: {max: 4k}}\n"
        "  - {sli: ttft, threshold: 3s, target: 95%, input_tokens: {min: 4k, max: 10k}}\n"
        "  - {sli: itl, threshold: 50ms, target: 95%}\n",
        source="x",
    )
    reader = run_of(tmp_path / "run", rows)
    objectives = judge(reader, slo).objectives
    result = latency_heatmap(reader.connect(), "TTFT", "ttft_user_s", "p50", MEASURED, objectives)
    by_row = dict(zip(result.rows, result.thresholds_s, strict=True))
    assert by_row["1k–2k"] == 1.0
    assert by_row["4k–8k"] == 3.0
    assert by_row["8k–16k"] == 9.0  # 11k is outside the bucket, so not all of the row is promised 3 s
    assert by_row["16k–32k"] == 9.0


def test_a_heatmap_says_where_it_jumps_and_outlines_it(tmp_path: Path) -> None:
    """TTFT in proportion to length, but three times as long from 8k on: rows 512, 1k, 2k, 4k | 8k, 16k, 32k."""
    rows = [
        served(number, input_tokens=tokens, ttft=tokens * 1e-5 * (3 if tokens >= 8192 else 1) * (1 + number % 7 / 100))
        for number, tokens in enumerate([512 * 2**k for k in range(7)] * 12)
    ]
    result = latency_heatmap(run_of(tmp_path / "run", rows).connect(), "TTFT", "ttft_s", "p50", MEASURED, ())
    assert result.label == "TTFT P50"
    assert result.rows[4] == "8k" and result.jumps == (("cliff", 4, 0),)
    assert "P50 of TTFT jumps" in result.says and "from 4k to 8k at batch 1" in result.says
