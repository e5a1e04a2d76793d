"""A worker's view of its master's clock, over a link that is slow, deaf or of another time."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace

import gevent
import pytest

from loadgen import clock as module
from loadgen import messages
from loadgen.clock import MasterClock, answer_questions

AHEAD_NS = 86_400 * 10**9


class Link:
    """Both ends' runners: what one sends, the other gets later. The master's clocks are ahead of the worker's."""

    def __init__(self, ahead_ns: int = 0, wall_ahead_ns: int = 0, delays_s: tuple[float, float] = (0, 0)) -> None:
        self.deaf = False
        self.ahead_ns, self.wall_ahead_ns, self.delays_s = ahead_ns, wall_ahead_ns, delays_s
        self.listeners: dict[str, Callable[..., None]] = {}
        self.master_host = "there"
        master = SimpleNamespace(register_message=self.register_message, send_message=self.from_master)
        answer_questions(master)

    def register_message(self, kind, listener, concurrent=False):
        assert not concurrent  # a greenlet of its own would wait for its turn
        self.listeners[kind] = listener

    def send_message(self, kind, data):
        if not self.deaf:
            self.later(self.delays_s[0], kind, data)

    def from_master(self, kind, data, client_id):
        assert client_id == "worker"
        shifted = data | {name: data[name] + self.ahead_ns for name in ("received_ns", "answered_ns")}
        shifted["wall_ns"] = data["wall_ns"] - self.ahead_ns + self.wall_ahead_ns
        self.later(self.delays_s[1], kind, shifted)

    def later(self, delay_s, kind, data):
        message = SimpleNamespace(data=data, node_id="worker")
        gevent.spawn_later(delay_s, lambda: self.listeners[kind](msg=message))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_ANSWERS_WITHIN_S", 0.3)
    monkeypatch.setattr(module, "_APART_S", 0.002)


@pytest.mark.parametrize("delays_s", [(0, 0), (0.01, 0), (0, 0.02)])
def test_the_runs_zero_is_found_whatever_the_masters_clocks_say(delays_s):
    link = Link(AHEAD_NS, 3 * 10**9, delays_s)
    clock = MasterClock(link)
    clock.look()
    now_ns = time.monotonic_ns()
    zero_ns = clock.begin("run", now_ns + AHEAD_NS, 0)
    reading = clock.reading()
    assert reading is not None
    assert 0 <= reading.bound_s < 0.2
    assert abs(zero_ns - now_ns) / 1e9 <= reading.bound_s
    assert abs(reading.offset_s + 3) <= reading.bound_s + 1e-3
    assert reading.drift_s is None


def test_a_drift_is_seen_by_the_next_look_and_proven_past_the_bounds():
    link = Link()
    clock = MasterClock(link)
    clock.look()
    clock.begin("run", 0, 0)
    link.ahead_ns -= 2 * 10**9  # the worker's has gained 2 s
    clock.look()
    reading = clock.reading()
    assert reading is not None and reading.drift_bound_s is not None and reading.drift_s is not None
    assert abs(reading.drift_s - 2) <= reading.drift_bound_s
    assert reading.proven_drift_s == pytest.approx(2, abs=2 * reading.drift_bound_s)
    clock.begin("run", 0, 0)  # another part of the same run
    assert clock.reading() == reading
    clock.begin("next", 0, 0)
    again = clock.reading()
    assert again is not None and again.drift_s is None


def test_a_master_that_does_not_answer_leaves_the_wall_clock_and_no_reading():
    link = Link()
    link.deaf = True
    clock = MasterClock(link)
    clock.look()
    zero_ns = clock.begin("run", 5, time.time_ns() + 10**9)
    assert abs(zero_ns - time.monotonic_ns() - 10**9) < 5 * 10**7
    assert clock.reading() is None


def test_answers_that_come_after_a_cut_do_not_make_the_bound_smaller_than_it_is():
    link = Link(delays_s=(0, 0.5))
    clock = MasterClock(link)
    clock.look()  # nobody answers within 0.3 s
    gevent.sleep(0.3)  # now they do
    link.delays_s = (0, 0)
    clock.look()
    now_ns = time.monotonic_ns()
    zero_ns = clock.begin("run", now_ns, 0)
    reading = clock.reading()
    assert reading is not None and abs(zero_ns - now_ns) / 1e9 <= reading.bound_s


def test_one_process_has_one_clock():
    clock = MasterClock(SimpleNamespace())
    clock.look()
    assert clock.begin("run", 77, 0) == 77
    assert clock.reading() is None


def test_nonsense_is_not_answered():
    link = Link()
    for data in (None, {}, {"sent_ns": "now"}, [1]):
        link.listeners[messages.CLOCK_QUESTION](msg=SimpleNamespace(data=data, node_id="worker"))
