"""A run in figures, against the arithmetic of the rows it was made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cliffwatch.errors import InputError
from cliffwatch.records.folder import SLO_FILE
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.summary import TOP_ERRORS, build
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served


def test_percentiles_are_those_of_numpy(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3000)
    report = build(run.dir)
    columns = run.table.to_pydict()
    ttft = [
        (first - intended) / 1e9
        for first, intended, outcome, phase in zip(
            columns["first_token_ns"], columns["intended_ns"], columns["outcome"], columns["phase"], strict=True
        )
        if outcome == "ok" and phase == "measured"
    ]
    figure = next(one for one in report.figures if one.label == "TTFT")
    assert figure.n == len(ttft)
    assert figure.mean == pytest.approx(np.mean(ttft))
    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert figure.percentiles[name].value == pytest.approx(np.quantile(ttft, level))
    assert figure.min is not None
    assert figure.max is not None
    assert figure.min <= figure.percentiles["p50"].value <= figure.percentiles["p99"].value <= figure.max  # type: ignore[operator]


def test_outcomes_sum_up_and_have_their_kind(tmp_path: Path) -> None:
    rows = [served(0), served(1), refused(2, Outcome.HTTP_429), refused(3, Outcome.LATE, sent=False)]
    report = build(run_of(tmp_path / "run", rows).dir)
    assert [(one.outcome, one.kind, one.n, one.share) for one in report.outcomes] == [
        ("ok", "ok", 2, 0.5), ("http_429", "failed", 1, 0.25), ("late", "not_served", 1, 0.25),
    ]  # fmt: skip
    assert report.n == 4


def test_messages_are_counted_and_bounded(tmp_path: Path) -> None:
    rows = [refused(number, Outcome.PROTOCOL, error=f"{number % 30}" + "x" * 5000) for number in range(40)]
    report = build(run_of(tmp_path / "run", rows).dir)
    assert len(report.errors) == TOP_ERRORS
    assert report.errors[0].n == 2
    assert max(len(one.message) for one in report.errors) == 200


def test_throughput_is_successful_tokens_over_the_held_time(tmp_path: Path) -> None:
    # 8 answers of 11 tokens, the last failure ends 30 s after it was due at 9 s: held for 39 s
    rows = [served(number) for number in range(8)]
    rows += [refused(number, Outcome.TIMEOUT_FIRST_TOKEN, waited=30) for number in (8, 9)]
    report = build(run_of(tmp_path / "run", rows).dir)
    assert report.work.held_s == pytest.approx(39)
    assert report.throughput.output_tokens_per_s == pytest.approx(88 / 39)
    assert report.throughput.requests_per_s == pytest.approx(8 / 39)


def test_cold_start_and_warm_up_stand_apart(tmp_path: Path) -> None:
    rows = [
        served(0, ttft=5, phase=Phase.COLD),
        served(1, ttft=1, phase=Phase.WARMUP),
        refused(2, Outcome.CONNECT, phase=Phase.WARMUP),
        served(3),
    ]
    report = build(run_of(tmp_path / "run", rows).dir)
    assert [(one.phase, one.n, one.ok, one.ttft.max) for one in report.apart] == [
        ("cold", 1, 1, pytest.approx(5)), ("warmup", 2, 1, pytest.approx(1)),
    ]  # fmt: skip
    assert report.n == 1


def test_a_closed_loop_run_counts_from_sent(tmp_path: Path) -> None:
    rows = [served(number, ttft=0.5, lag=2) for number in range(3)]
    report = build(run_of(tmp_path / "run", rows, open_loop=False).dir)
    assert report.figures[0].figure == "ttft_s"
    assert report.figures[0].mean == pytest.approx(0.5)
    assert [one.label for one in report.figures].count("TTFT, service") == 0


def test_the_runs_own_slo_is_used_and_its_faults_are_named(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [served(0)], slo="name: own\nobjectives: [{sli: availability, target: 95%}]\n")
    judgement = build(run.dir).judgement
    assert judgement is not None
    assert judgement.slo == "own"
    (run.dir / SLO_FILE).write_bytes(b"\xff")
    with pytest.raises(InputError, match=SLO_FILE):
        build(run.dir)
