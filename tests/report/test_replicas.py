"""Requests by replica, as every form of the report shows them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.html import render as html
from cliffwatch.report.json import render as as_json
from cliffwatch.report.summary import Report, build
from cliffwatch.report.table import render as table
from tests.slo.rows import refused, run_of, served

ODD = "o'dd <b>"


def text_of(report: Report) -> str:
    console = Console(width=160, record=True)
    with console.capture() as capture:
        console.print(table(report))
    return capture.get()


def test_replicas_have_their_n_share_and_p95_with_its_bound(tmp_path: Path) -> None:
    slow = [0.1 + 0.001 * (number * 7 % 300) for number in range(300)]  # all values, in no order of time
    rows = [served(number, ttft=ttft, replica="a") for number, ttft in enumerate(slow)]
    rows += [served(300 + number, ttft=0.05, replica=ODD) for number in range(99)]
    rows += [refused(399, Outcome.HTTP_5XX, status=503, replica=ODD)]
    rows += [refused(400, Outcome.CONNECT, sent=False), served(401, phase=Phase.WARMUP, replica="c")]
    asked = {"header": "X-Served-By", "expected": 3, "names": ["a", ODD, "c"]}
    run = run_of(tmp_path / "run", rows, replicas=asked)
    report = build(run.dir)
    found = report.replicas
    assert found is not None
    assert (found.expected, found.seen, found.n, found.answers) == (3, 2, 400, 400)
    assert found.skew == pytest.approx(300 / (400 / 3))
    assert [(one.name, one.n, one.ok, one.share) for one in found.replicas] == [
        ("a", 300, 300, 0.75), (ODD, 100, 99, 0.25), ("c", 0, 0, 0.0),
    ]  # fmt: skip
    p95 = found.replicas[0].ttft_p95
    assert (p95.value, p95.n) == (pytest.approx(np.quantile(slow, 0.95)), 300)
    assert p95.low is not None and p95.high is not None and p95.value is not None and p95.low < p95.value < p95.high
    assert (found.replicas[1].ttft_p95.n, found.replicas[1].ttft_p95.few) == (99, True)
    assert found.replicas[2].ttft_p95.value is None
    assert json.loads(as_json(report))["replicas"]["replicas"][0]["n"] == 300
    said = "2 of 3 expected replicas answered (400 of 400 answers said in X-Served-By who gave them)"
    assert said in text_of(report) and ODD in text_of(report)
    page = html(run, report)
    assert said in page and "o&#39;dd &lt;b&gt;" in page and ODD not in page


def test_a_run_that_did_not_ask_says_nothing_of_replicas(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [served(0)])
    report = build(run.dir)
    assert report.replicas is None
    assert "replica" not in text_of(report).replace("unseen replicas", "").replace("--replica", "")
    assert 'id="replicas"' not in html(run, report)


def test_answers_that_name_nobody_are_counted_as_such(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [served(0), served(1)], replicas={"header": "X-Pod", "expected": 2})
    found = build(run.dir).replicas
    assert found is not None
    assert (found.n, found.answers, found.skew, found.replicas) == (0, 2, None, ())
