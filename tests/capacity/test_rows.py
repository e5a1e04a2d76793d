"""The series of a run folder: the judgement's own counts, and what has no end yet."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from cliffwatch.capacity.rows import read_series
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.slo.judge import judge
from cliffwatch.slo.spec import SloFile
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload
from tests.records.synthetic import make_run
from tests.slo.rows import refused, run_of, served

SLO = SloFile.model_validate(
    {
        "name": "test",
        "objectives": [
            {"sli": "ttft", "threshold": 1.0, "target": 0.95},
            {"sli": "ttft", "threshold": 2.0, "target": 0.95, "input_tokens": {"min": "8k"}},
            {"sli": "itl", "threshold": 0.03, "target": 0.95},
            {"sli": "availability", "target": 0.99},
        ],
    }
)


CLOSED = Workload.model_validate({"arrivals": {"kind": "concurrency", "users": 1}, "duration": 10})


def workload(rate: float, duration: float) -> Workload:
    arrivals = {"kind": "constant", "rate": rate}
    return Workload.model_validate({"arrivals": arrivals, "duration": duration, "cold_start": {"requests": 0}})


def test_marks_are_what_the_judgement_counts(tmp_path):
    run = make_run(tmp_path / "run", 3000)
    judged = judge(RunReader(run.dir), SLO)
    series = read_series(RunReader(run.dir), SLO, workload(1.0, 100.0))
    for one, marks in zip(judged.objectives, series.marks, strict=True):
        assert (np.count_nonzero(marks > 0), np.count_nonzero(marks < 0)) == (one.good, one.bad)
    assert np.count_nonzero(series.kept) == judged.goodput.good
    assert (np.diff(series.due_s) >= 0).all()


def test_what_the_schedule_has_and_the_rows_have_not_is_pending(tmp_path):
    plan = workload(1.0, 10.0)
    planned = list(schedule(plan))
    rows = [served(1), served(2, ttft=1.5), served(3), refused(4, Outcome.HTTP_5XX), refused(5, Outcome.CANCELLED)]
    rows = [structs.replace(row, request_id=one.request_id) for row, one in zip(rows, planned, strict=False)]
    series = read_series(run_of(tmp_path, rows), SLO, plan)
    assert len(series) == len(planned)
    assert series.pending.sum() == len(planned) - 4  # the one that we cut off, and those without a row
    assert np.isinf(series.ended_s[series.pending]).all()
    assert series.marks[0][~series.pending].tolist() == [1, -1, 1, 0]
    assert series.marks[3][~series.pending].tolist() == [1, 1, 1, -1]
    assert not series.marks[:, series.pending].any()


def test_users_who_leave_as_planned_are_not_pending_and_late_ones_are_the_generator_s(tmp_path):
    rows = [served(1), refused(2, Outcome.CANCELLED, cancel_after_s=0.5), refused(3, Outcome.LATE, sent=False)]
    series = read_series(run_of(tmp_path, rows), SLO, CLOSED)
    assert series.pending.tolist() == [False, False]
    assert series.marks[0].tolist() == [1, 0]


def test_only_measured_requests_count(tmp_path):
    rows = [served(1, phase=Phase.COLD), served(2, phase=Phase.WARMUP), served(3)]
    assert read_series(run_of(tmp_path, rows), SLO, CLOSED).due_s.tolist() == [3.0]
