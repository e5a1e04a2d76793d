"""Messages of the master that are lost on their way."""

from __future__ import annotations

import gevent
import pytest

from cliffwatch.records.manifest import RunState
from loadgen import messages, orders
from loadgen.coordinator import Coordinator
from tests.loadgen.conducted import FakeRunner, begun, impatient, preparation, until_begun  # noqa: F401

pytestmark = pytest.mark.usefixtures("impatient")


def test_an_assignment_that_is_lost_on_the_way_is_given_again(tmp_path, monkeypatch):
    """At the start, and at the handover of what the dead worker left."""
    monkeypatch.setattr(orders, "ASSIGN_AGAIN_S", 0.1)
    runner = FakeRunner({"a": (20, "finishes"), "b": (7, "dies")}, loses={(messages.ASSIGN, "b")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path, "redistribute"), ["a", "b"])
    gevent.spawn(subject.conduct)
    gevent.spawn(says_what_it_holds, runner, "b")
    until_begun(tmp_path)
    runner.loses.add((messages.ASSIGN, "a"))
    gevent.spawn(says_what_it_holds, runner, "a")
    assert subject.wait(20) and subject.error is None
    assert (subject.manifest.state, subject.manifest.accounting.ok) == (RunState.COMPLETE, 40)
    given = [(name, data["shard"]) for kind, name, data in runner.sent if kind == messages.ASSIGN]
    assert given == [("a", 0), ("b", 1), ("b", 1), ("a", 2), ("a", 2)]


def says_what_it_holds(runner: FakeRunner, name: str) -> None:
    """A worker's beats, until it dies 0.3 s after it was sent off."""
    subject, sent_off_s = runner.subject, 0.0
    while not subject.wait(0.02) and (runner.parts[name][1] != "dies" or sent_off_s < 0.3):
        held = [number for number, (*_, assignment) in runner.tallies.items() if assignment["shard"] == number]
        subject.on_beat(name, messages.Beat(run_id="run-1", shards=held, host="h", pid=1, sent_ns=0))
        sent_off_s += 0.02 * any(kind == messages.GO and to == name for kind, to, _ in runner.sent)


def test_a_worker_that_is_still_ready_is_sent_off_again_and_a_deaf_one_is_stopped_again(tmp_path):
    runner = FakeRunner({"a": (40, "waits")}, loses={(messages.GO, "a"), (messages.STOP, "a")})
    subject = begun(runner, tmp_path)
    ready = messages.Ready(run_id="run-1", shard=0, host="h", pid=1)
    subject.on_ready("a", messages.plain(ready))
    first, second = (data for kind, _, data in runner.sent if kind == messages.GO)
    assert first == second
    beat = messages.Beat(run_id="run-1", shards=[0], host="h", pid=1, sent_ns=0)
    subject.on_beat("a", beat)
    subject.interrupt("interrupted")
    assert not subject.wait(0.2)  # it did not hear
    subject.on_beat("a", beat)
    assert subject.wait(5) and subject.manifest.accounting.ok == 40
    assert [data["now"] for kind, _, data in runner.sent if kind == messages.STOP] == [False, False]
