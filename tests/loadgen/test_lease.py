"""The lease: who may still send, whatever stood still, and whatever came late."""

from __future__ import annotations

import time

import gevent
from hypothesis import given
from hypothesis import strategies as st

from loadgen.lease import BEAT_S, HANDOVER_S, LEASE_S, PAUSE_S, TICK_S, Lease, Pulse
from tests.loadgen.test_dispatcher import MS, Fakes, dispatcher, plan

S = 1_000_000_000


@given(
    beats=st.lists(st.tuples(st.floats(0, 60), st.floats(0, 40), st.floats(0, 40)), min_size=1, max_size=20),
)
def test_no_lease_outlives_the_moment_at_which_the_master_may_hand_over(beats):
    """Beats sent at some time, heard after some delay, answered after another: in any order, however late."""
    lease = Lease(0)
    last_heard_s = 0.0
    for sent_s, way_s, way_back_s in beats:
        last_heard_s = max(last_heard_s, sent_s + way_s)
        assert way_back_s >= 0
        lease.renew(round(sent_s * S))
        assert lease.until_ns / S < last_heard_s + HANDOVER_S
    assert lease.until_ns == max(round(sent_s * S) for sent_s, _, _ in beats) + round(LEASE_S * S)
    assert BEAT_S < LEASE_S < HANDOVER_S


def test_a_standstill_is_measured_and_is_not_taken_for_the_others_silence():
    now_s = [100.0]
    pulse = Pulse(clock=lambda: now_s[0])
    for _ in range(20):
        now_s[0] += TICK_S
        pulse.tick()
    now_s[0] += 30
    assert pulse.tick() <= 2 * TICK_S
    assert 2.0 <= pulse.silence_s <= 2.3
    assert 29 < pulse.longest[0] < 31 and pulse.longest[0] > PAUSE_S
    pulse.heard()
    assert pulse.silence_s == 0
    pulse.forget()
    assert pulse.longest == (0.0, 0)


def test_beyond_its_lease_a_worker_holds_then_sends_what_is_not_too_old():
    fakes, lease = Fakes(), Lease(time.monotonic_ns() + 55 * MS)
    subject = dispatcher(fakes, [plan(number, 20 * number) for number in range(10)], lease=lease)
    job = gevent.spawn(subject.run, time.monotonic_ns())
    gevent.sleep(0.3)
    held = list(fakes.sent_ms)
    assert held in ([0, 1], [0, 1, 2])
    assert fakes.issues == held
    lease.until_ns = 1 << 62
    job.join(timeout=2)
    assert sorted(fakes.sent_ms) == fakes.issues == list(range(10))


def test_a_worker_that_stood_still_at_any_point_sends_nothing_it_may_not(monkeypatch):
    """The clock leaps over the lease right after a request was put on record: it is not sent, nor any other."""
    leap_ns = [0]
    fakes = Fakes()
    on_record = fakes.issued

    def stand_still(request_id, intended_ns):
        on_record(request_id, intended_ns)
        if request_id == 1:
            leap_ns[0] = 30 * S

    monkeypatch.setattr(fakes, "issued", stand_still)
    start_ns = time.monotonic_ns()
    subject = dispatcher(
        fakes, [plan(number) for number in range(5)], lease=Lease(start_ns + 10 * S),
        now_ns=lambda: time.monotonic_ns() + leap_ns[0],
    )  # fmt: skip
    job = gevent.spawn(subject.run, start_ns)
    gevent.sleep(0.2)
    subject.cease()  # on waking it is told that others have its part
    subject.stop(0)
    job.join(timeout=2)
    assert job.ready() and subject.cut_short
    assert list(fakes.sent_ms) == [0] and fakes.issues == [0, 1]
