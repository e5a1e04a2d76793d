"""The dispatcher against requests that take their time, refuse, or never end."""

from __future__ import annotations

import random
import time
from itertools import islice, pairwise
from statistics import median

import gevent
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cliffwatch.errors import RunError
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.workload.schedule import PlannedRequest, schedule
from cliffwatch.workload.spec import Workload
from loadgen.composer import Prepared, fit_to_limit
from loadgen.connection import Cancelled
from loadgen.dispatcher import Dispatcher

MS = 1_000_000


def plan(request_id: int, intended_ms: float = 0.0, **changes: int) -> PlannedRequest:
    fields = {"input_tokens": 100, "output_tokens": 10, "batch": 1} | changes
    return PlannedRequest(
        request_id=request_id, intended_ns=int(intended_ms * MS), cache="none", prefix_group=None,
        phase=Phase.MEASURED, endpoint="completions", **fields,
    )  # fmt: skip


def workload(**changes: object) -> Workload:
    return Workload.model_validate({"duration": 60, "arrivals": {"kind": "constant", "rate": 10}, **changes})


class Fakes:
    """Requests and recorder in one: remembers what it was asked, with times in ms since `t0_ns`."""

    def __init__(self, service_s=0.0, refuse_issue_after: int | None = None) -> None:
        self.service_s = service_s
        self.refuse_issue_after = refuse_issue_after
        self.issues: list[int] = []
        self.rows: list[RequestRow] = []
        self.sent_ms: dict[int, float] = {}
        self.phases: dict[int, Phase] = {}
        self.now = self.most = 0
        self.plans: dict[int, PlannedRequest] = {}
        self.ends_at: int | None = None  # the turn that sessions have not

    def prepare(self, planned):
        self.plans[planned.request_id] = planned
        return Prepared(planned, b"", planned.input_tokens)

    def send(self, prepared, *, intended_ns, phase, t0_ns):
        request_id = prepared.plan.request_id
        self.sent_ms[request_id] = (time.monotonic_ns() - t0_ns) / MS
        self.phases[request_id] = phase
        self.now += 1
        self.most = max(self.most, self.now)
        outcome = Outcome.OK
        try:
            gevent.sleep(self.service_s() if callable(self.service_s) else self.service_s)
        except Cancelled:
            outcome = Outcome.CANCELLED
        self.now -= 1
        return self.row(prepared, outcome, intended_ns)

    def following(self, request_id):
        then = self.plans.pop(request_id).then
        return None if then is None or then.turn == self.ends_at else self.prepare(then)

    def unsent(self, prepared, outcome, error, *, intended_ns, now_ns):
        return self.row(prepared, outcome, intended_ns)

    def row(self, prepared, outcome, intended_ns):
        return RequestRow(
            request_id=prepared.plan.request_id, worker=0, phase=Phase.MEASURED, endpoint="completions", model="m",
            batch=1, cache="none", input_tokens=1, max_output_tokens=1, intended_ns=intended_ns, outcome=outcome,
        )  # fmt: skip

    def issued(self, request_id, intended_ns):
        if self.refuse_issue_after is not None and len(self.issues) >= self.refuse_issue_after:
            raise RunError("cannot be written: No space left on device")
        self.issues.append(request_id)

    def ended(self, row):
        self.rows.append(row)

    @property
    def outcomes(self):
        return {row.request_id: row.outcome for row in self.rows}


def dispatcher(fakes: Fakes, plans, spec: Workload | None = None, **options: object) -> Dispatcher:
    spec = spec or workload()
    return Dispatcher(spec, iter(plans), fakes, fakes, **{"users": range(spec.users or 0), **options})


def test_a_slow_server_never_delays_the_schedule():
    fakes = Fakes(service_s=0.5)
    plans = [plan(number, 20 * number) for number in range(20)]
    dispatcher(fakes, plans).run(time.monotonic_ns() + 20 * MS)
    lags_ms = [fakes.sent_ms[p.request_id] - p.intended_ns / MS for p in plans]
    assert fakes.most == 20  # the first is still running when the last is sent
    assert min(lags_ms) >= 0
    assert sorted(lags_ms)[10] < 20


def test_never_early_and_in_order():
    fakes = Fakes()
    gaps = random.Random(1)
    at, plans = 0.0, []
    for number in range(100):
        at += gaps.expovariate(1) * 3
        plans.append(plan(number, at))
    dispatcher(fakes, plans).run(time.monotonic_ns() + 5 * MS)
    assert fakes.issues == list(range(100))
    assert all(fakes.sent_ms[p.request_id] >= p.intended_ns / MS for p in plans)


def test_what_is_beyond_the_allowed_lag_is_late_not_sent_and_not_lost():
    fakes = Fakes()
    plans = [plan(0, 0), plan(1, 100), plan(2, 450)]
    dispatcher(fakes, plans, workload(max_lag="200ms")).run(time.monotonic_ns() - 500 * MS)
    assert fakes.outcomes == {0: Outcome.LATE, 1: Outcome.LATE, 2: Outcome.OK}
    assert list(fakes.sent_ms) == [2]


@settings(max_examples=30, deadline=None)
@given(
    gaps=st.lists(st.integers(0, 3), max_size=30),
    service_ms=st.integers(0, 10),
    stop_after_ms=st.one_of(st.none(), st.integers(0, 30)),
)
def test_every_request_issued_ends_exactly_once(gaps, service_ms, stop_after_ms):
    fakes = Fakes(service_s=service_ms / 1000)
    at, plans = 0, []
    for number, gap in enumerate(gaps):
        at += gap
        plans.append(plan(number, at))
    subject = dispatcher(fakes, plans)
    job = gevent.spawn(subject.run, time.monotonic_ns())
    if stop_after_ms is not None:
        gevent.sleep(stop_after_ms / 1000)
        subject.stop(0.002)
    job.join(timeout=5)
    assert job.ready()
    assert sorted(fakes.issues) == sorted(row.request_id for row in fakes.rows)
    if stop_after_ms is None:
        assert len(fakes.rows) == len(plans)


def test_a_closed_loop_keeps_its_users_busy_and_no_more():
    fakes = Fakes(service_s=lambda: random.uniform(0.001, 0.01))
    spec = workload(arrivals={"kind": "concurrency", "users": 7})
    for shard, users in ((0, 3), (1, 2), (2, 2)):
        fakes = Fakes(service_s=0.005)
        plans = [plan(number) for number in range(60)]
        dispatcher(fakes, plans, spec, users=range(shard, 7, 3)).run(time.monotonic_ns())
        assert fakes.most == users
        assert sorted(fakes.outcomes) == list(range(60))


def test_a_closed_loop_ends_by_time_and_tells_warm_up_by_it():
    fakes = Fakes(service_s=0.02)
    spec = workload(
        arrivals={"kind": "concurrency", "users": 2}, duration="400ms", warmup={"duration": "200ms"},
        cold_start={"requests": 1},
    )  # fmt: skip
    dispatcher(fakes, (plan(number) for number in range(10_000)), spec).run(time.monotonic_ns())
    assert 10 < len(fakes.rows) < 60
    assert fakes.phases[0] is Phase.COLD
    assert {fakes.phases[i] for i in fakes.sent_ms if i and fakes.sent_ms[i] < 190} == {Phase.WARMUP}
    assert {fakes.phases[i] for i in fakes.sent_ms if fakes.sent_ms[i] > 220} == {Phase.MEASURED}


CHAT = {"turns": {"kind": "fixed", "value": 3}, "think_time": "50ms"}


def conversations(count: int, spec: Workload, gap_ms: float = 0) -> list[PlannedRequest]:
    """The first turns of sessions that begin `gap_ms` apart."""
    return [
        replace(one, intended_ns=int(index * gap_ms * MS)) for index, one in enumerate(islice(schedule(spec), count))
    ]


def test_a_turn_is_due_its_think_time_after_the_answer_and_sessions_keep_their_arrivals():
    fakes = Fakes(service_s=0.08)
    spec = workload(sessions=CHAT)
    dispatcher(fakes, conversations(4, spec, 20), spec).run(time.monotonic_ns())
    assert sorted(fakes.issues) == list(range(12))
    for first in range(0, 12, 3):
        assert fakes.sent_ms[first] - first / 3 * 20 < 15  # a session does not wait for another one's answer
        for turn in (first + 1, first + 2):
            due_ms = fakes.sent_ms[turn - 1] + 80 + 50
            assert due_ms - 1 <= fakes.sent_ms[turn] < due_ms + 25


def test_turns_keep_exactly_to_ended_plus_think_time():
    class Ended(Fakes):
        def row(self, prepared, outcome, intended_ns):
            return msgspec.structs.replace(super().row(prepared, outcome, intended_ns), ended_ns=intended_ns + 3 * MS)

    fakes = Ended()
    spec = workload(sessions=CHAT)
    dispatcher(fakes, conversations(1, spec), spec).run(time.monotonic_ns())
    assert [row.intended_ns for row in fakes.rows] == [0, 53 * MS, 106 * MS]


def test_a_session_that_ends_early_issues_nothing_more():
    fakes = Fakes(service_s=0.001)
    fakes.ends_at = 1
    spec = workload(sessions=CHAT)
    subject = dispatcher(fakes, conversations(3, spec), spec)
    subject.run(time.monotonic_ns())
    assert sorted(fakes.issues) == sorted(row.request_id for row in fakes.rows) == [0, 3, 6]
    assert not subject.cut_short


def test_turns_beyond_the_duration_are_not_issued():
    fakes = Fakes(service_s=0.001)
    spec = workload(sessions={**CHAT, "think_time": "300ms"}, duration="200ms")
    dispatcher(fakes, conversations(2, spec), spec).run(time.monotonic_ns())
    assert sorted(fakes.issues) == [0, 3]


def test_a_late_turn_ends_its_session():
    fakes = Fakes(service_s=0.001)
    spec = workload(sessions=CHAT, max_lag="10ms")
    dispatcher(fakes, conversations(2, spec), spec).run(time.monotonic_ns() - 500 * MS)
    assert fakes.outcomes == {0: Outcome.LATE, 3: Outcome.LATE}


def test_stopping_ends_sessions_between_turns_and_counts_every_turn_once():
    fakes = Fakes(service_s=0.02)
    spec = workload(sessions={**CHAT, "think_time": "50s"})
    subject = dispatcher(fakes, conversations(5, spec), spec)
    job = gevent.spawn(subject.run, time.monotonic_ns())
    gevent.sleep(0.1)
    started = time.monotonic()
    subject.stop(drain_s=5)
    job.join(timeout=2)
    assert job.ready() and subject.cut_short
    assert time.monotonic() - started < 1
    assert sorted(fakes.issues) == sorted(fakes.outcomes) == [0, 3, 6, 9, 12]


def test_users_of_a_closed_loop_run_whole_sessions():
    fakes = Fakes(service_s=0.005)
    spec = workload(
        sessions={**CHAT, "think_time": "5ms"}, arrivals={"kind": "concurrency", "users": 2}, requests=18, duration=None
    )
    dispatcher(fakes, schedule(spec), spec).run(time.monotonic_ns())
    assert sorted(fakes.outcomes) == list(range(18))
    assert fakes.most == 2


def gaps_ms(fakes: Fakes) -> list[float]:
    times = sorted(fakes.sent_ms.values())
    return [after - before for before, after in pairwise(times)]


@pytest.mark.parametrize(
    ("pause", "gap_ms"),
    [({"pacing": "100ms"}, 100), ({"think_time": "60ms"}, 100), ({"pacing": "30ms"}, 40), ({}, 40)],
)
def test_a_user_pauses_from_start_to_start_or_after_an_end(pause, gap_ms):
    """Answers take 40 ms: pacing of 100 ms leaves gaps of 100 ms, not 140, the first gap like the others."""
    fakes = Fakes(service_s=0.04)
    spec = workload(arrivals={"kind": "concurrency", "users": 1, **pause}, requests=6)
    dispatcher(fakes, [plan(number) for number in range(6)], spec).run(time.monotonic_ns())
    assert median(gaps_ms(fakes)) == pytest.approx(gap_ms, abs=15)
    assert all(row.intended_ns / MS <= fakes.sent_ms[row.request_id] for row in fakes.rows)


def test_users_with_a_pause_do_not_fire_together():
    fakes = Fakes(service_s=0.001)
    spec = workload(arrivals={"kind": "concurrency", "users": 5, "pacing": "200ms"})
    dispatcher(fakes, [plan(number) for number in range(15)], spec).run(time.monotonic_ns())
    assert median(gaps_ms(fakes)) == pytest.approx(40, abs=15)  # together they would be 0, 0, 0, 0, 200


def test_stopping_wakes_the_users_who_think():
    fakes = Fakes(service_s=0.001)
    spec = workload(arrivals={"kind": "concurrency", "users": 3, "think_time": "50s"})
    subject = dispatcher(fakes, (plan(number) for number in range(99)), spec)
    job = gevent.spawn(subject.run, time.monotonic_ns())
    gevent.sleep(0.05)
    started = time.monotonic()
    subject.stop(drain_s=5)
    job.join(timeout=2)
    assert job.ready()
    assert time.monotonic() - started < 1
    assert len(fakes.rows) == len(fakes.issues) == 1  # the others would have begun 16 s later


def test_stopping_drains_then_cancels():
    fakes = Fakes(service_s=1.2)
    subject = dispatcher(fakes, [plan(number, 800 * number) for number in range(9)])
    job = gevent.spawn(subject.run, time.monotonic_ns())
    gevent.sleep(1.0)  # the first has 0.2 s left, the second 1 s
    started = time.monotonic()
    subject.stop(drain_s=0.6)
    job.join(timeout=2)
    assert time.monotonic() - started < 0.9
    assert fakes.outcomes == {0: Outcome.OK, 1: Outcome.CANCELLED}


def test_a_full_disk_ends_the_load_with_its_reason():
    fakes = Fakes(refuse_issue_after=3)
    subject = dispatcher(fakes, [plan(number, number) for number in range(9)])
    subject.run(time.monotonic_ns())
    assert sorted(fakes.outcomes) == [0, 1, 2]
    assert "No space left" in subject.failure


@given(
    st.integers(1, 10_000), st.integers(1, 3000), st.one_of(st.none(), st.integers(2, 9000))
)  # fmt: skip
def test_plans_are_shortened_to_the_limit_and_only_then(input_tokens, output_tokens, limit):
    planned = plan(0, input_tokens=input_tokens, output_tokens=output_tokens)
    fitted = fit_to_limit(planned, limit)
    if limit is None or input_tokens + output_tokens <= limit:
        assert fitted is planned
    else:
        assert fitted.input_tokens + fitted.output_tokens == limit
        assert fitted.input_tokens >= 1 and 1 <= fitted.output_tokens <= output_tokens


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"), [(4095, 1, (4095, 1)), (3590, 512, (3584, 512)), (9000, 6000, (1, 4095))]
)
def test_a_limit_of_4096(prompt, answer, expected):
    fitted = fit_to_limit(plan(0, input_tokens=prompt, output_tokens=answer), 4096)
    assert (fitted.input_tokens, fitted.output_tokens) == expected
