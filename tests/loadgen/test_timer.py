from __future__ import annotations

import sys
import time

import gevent
import pytest

from loadgen import timer


@pytest.mark.parametrize("make", [timer.make_timer, timer._LoopTimer])
def test_a_timer_is_never_early_and_lets_others_run(make):
    subject, ticks = make(), []
    beside = gevent.spawn(lambda: [ticks.append(gevent.sleep(0.005)) for _ in range(5)])
    lates_us = []
    for _ in range(10):
        due_ns = time.monotonic_ns() + 3_300_000
        subject.wait_until(due_ns)
        lates_us.append((time.monotonic_ns() - due_ns) / 1000)
    beside.join()
    subject.wait_until(time.monotonic_ns() - 1)  # the past: at once
    subject.close()
    assert min(lates_us) >= 0
    assert len(ticks) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's")
def test_linux_has_the_kernel_timer_and_it_does_not_round_to_milliseconds():
    subject = timer.make_timer()
    lates_us = []
    for _ in range(50):
        due_ns = time.monotonic_ns() + 2_100_000
        subject.wait_until(due_ns)
        lates_us.append((time.monotonic_ns() - due_ns) / 1000)
    subject.close()
    assert isinstance(subject, timer._KernelTimer)
    assert sorted(lates_us)[5] < 400  # a busy machine delays some, not the quickest
