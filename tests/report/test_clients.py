"""Retries and users who left, as a report counts them: each request once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cliffwatch.records.schema import PLANNED, Outcome, Phase
from cliffwatch.report import words
from cliffwatch.report.clients import Cancellations, Retries
from cliffwatch.report.html import render as html
from cliffwatch.report.json import render as as_json
from cliffwatch.report.summary import build
from cliffwatch.report.table import render as table
from tests.slo.rows import SECOND, refused, run_of, served


def tried(*outcomes: Outcome) -> dict[str, Any]:
    """Attempts a second apart, the last of them a hundred seconds after the run's zero."""
    count = len(outcomes)
    return {
        "attempts": count,
        "attempt_sent_ns": [(101 - count + number) * SECOND for number in range(count)],
        "attempt_ended_ns": [(101 - count + number) * SECOND + 1 for number in range(count)],
        "attempt_outcomes": list(outcomes),
        "attempt_statuses": [None] * count,
    }


def test_a_retried_request_is_one_request(tmp_path: Path) -> None:
    rows = [
        served(0, attempts=1, phase=Phase.COLD),
        served(1, attempts=1),
        served(100, ttft=0.3, itl=0.0, **tried(Outcome.HTTP_429, Outcome.HTTP_429, Outcome.OK)),
        refused(3, Outcome.HTTP_429, **tried(Outcome.HTTP_429, Outcome.HTTP_429)),
        refused(4, Outcome.LATE, sent=False, attempts=0),
        refused(5, Outcome.LOST),
    ]
    run = run_of(tmp_path / "run", rows, workload={"retries": {"attempts": 3}})
    report = build(run.dir)
    assert report.retries == Retries(n=3, retried=2, retried_ok=1, attempts=6)
    assert report.cancellations is None
    assert report.retried is not None
    assert (report.retried.n, report.retried.mean) == (1, pytest.approx(2.3))  # 98 s to 100.3 s
    assert report.manifest.accounting is not None and report.manifest.accounting.issued == 6
    assert json.loads(as_json(report))["retries"]["attempts"] == 6
    said = "2 of 3 requests were tried again, 1 of them answered in the end; 6 attempts in all"
    assert said in text_of(report) and "E2E, all attempts" in text_of(report)
    assert said in html(run, report)


def test_users_who_left_are_told_from_those_who_were_stopped(tmp_path: Path) -> None:
    due = {"attempts": 1, "cancel_after_s": 2.0}
    rows = [
        served(0, attempts=1),
        served(1, **due),
        refused(2, Outcome.CANCELLED, error=PLANNED, **due),
        refused(3, Outcome.CANCELLED, error=PLANNED, **due),
        refused(4, Outcome.CANCELLED, error="the run was stopped", **due),
        refused(5, Outcome.HTTP_5XX, **due),
        refused(6, Outcome.CANCELLED, error="the run was stopped", attempts=1),
    ]
    run = run_of(tmp_path / "run", rows, workload={"cancellations": {"share": 1}})
    report = build(run.dir)
    assert report.cancellations == Cancellations(n=7, planned=5, left=2, ended_ok=1, ended_otherwise=2)
    assert report.retries is None and report.retried is None
    said = "the users of 5 of 7 requests were to leave: 2 left, 1 had their answer before, 2 failed before"
    assert said in text_of(report)
    assert said in html(run, report)


def test_a_run_that_had_neither_says_nothing_of_them(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", [served(0)])
    assert "retries" not in text_of(build(run.dir)) and "cancellations" not in text_of(build(run.dir))


def test_words_for_none() -> None:
    none = words.retries(Retries(n=1200, retried=0, retried_ok=0, attempts=1200))
    assert none == "0 of 1,200 requests were tried again; 1,200 attempts in all"


def text_of(report: Any) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table(report))
    return capture.get()
