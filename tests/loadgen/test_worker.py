"""A worker's side of the end of a part: what the master must hear is said until it was heard."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import gevent
import gevent.event
import pytest

from loadgen import messages
from loadgen.accounting import Tally
from loadgen.identity import SecretFiles
from tests.loadgen.test_accounting import Nothing

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("LOCUST_SKIP_MONKEY_PATCH", "1")  # this process's sockets and threads are other tests' too
    from loadgen import worker as module


class FakeRunner:
    """Keeps what a worker says, and its listeners."""

    master_host = "h"

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.listeners: dict[str, Any] = {}
        self.left = gevent.event.Event()

    def register_message(self, kind: str, listener: Any, concurrent: bool = False) -> None:
        self.listeners[kind] = listener

    def send_message(self, kind: str, data: dict[str, Any]) -> None:
        self.said.append((kind, data))

    def quit(self) -> None:
        self.left.set()

    def hear(self, kind: str, message: Any) -> None:
        self.listeners[kind](msg=SimpleNamespace(data=messages.plain(message)))

    def closed(self) -> list[int]:
        return [data["shard"] for kind, data in self.said if kind == messages.CLOSED]


class FakeShard:
    """A part that is sent in no time; it cannot be closed where it is `broken`."""

    ships = unclosed = False
    broken = lasts = False
    made: ClassVar[list[FakeShard]] = []

    def __init__(self, assignment: Any, *_: object, **__: object) -> None:
        self.run_id, self.number, self.drain_s = assignment.run_id, assignment.shard, 5.0
        self.runs, self.drains, self.stopped = 0, [], gevent.event.Event()
        self.made.append(self)
        self._tally = Tally(self.run_id, self.number, Nothing())

    def run(self, _zero_ns: int) -> None:
        self.runs += 1
        if self.lasts:
            self.stopped.wait(10)

    def stop(self, drain_s: float) -> None:
        self.drains.append(drain_s)

    def report(self) -> Any:
        return self._tally.report()

    def close(self) -> Any:
        if self.broken:
            raise ValueError("no such column")
        return self._tally.report(closed=True)


@pytest.fixture
def runner(monkeypatch):
    fake = FakeRunner()
    hook = SimpleNamespace(add_listener=lambda _: None)
    names = ("report_to_master", "heartbeat_received", "quitting", "test_stopping")
    events = SimpleNamespace(**dict.fromkeys(names, hook))
    monkeypatch.setattr(module, "Shard", FakeShard)
    monkeypatch.setattr(FakeShard, "made", [])
    monkeypatch.setattr(module, "Assignment", messages.Go)  # a run and a number are all that these parts need
    monkeypatch.setattr(module, "LocustStatistics", lambda _: SimpleNamespace(show=lambda _: None))
    clock = SimpleNamespace(look=lambda: None, begin=lambda *_: 0, reading=lambda: None)
    monkeypatch.setattr(module, "MasterClock", lambda _: clock)
    module.Worker(SimpleNamespace(runner=fake, events=events, stats=None), SecretFiles())
    return fake


def go(runner: FakeRunner, shard: int) -> None:
    message = messages.Go(run_id="run", shard=shard, t0_ns=0, t0_unix_ns=0)
    runner.hear(messages.ASSIGN, message)
    runner.hear(messages.GO, message)


def wait_until(condition: Callable[[], bool]) -> None:
    with gevent.Timeout(10):
        while not condition():
            gevent.sleep(0.01)


def renewal(unheard: list[int], run_id: str = "run") -> messages.Renewal:
    return messages.Renewal(run_id=run_id, asked=[], held=[], sent_ns=0, unheard=unheard)


def test_a_part_that_is_closed_is_told_of_again_until_the_master_has_heard(runner):
    go(runner, 3)
    wait_until(lambda: runner.closed() == [3])
    runner.hear(messages.RENEWAL, renewal([3]))
    assert runner.closed() == [3, 3]
    for heard in (renewal([]), renewal([4]), renewal([3], run_id="another")):
        runner.hear(messages.RENEWAL, heard)
    assert runner.closed() == [3, 3]
    go(runner, 5)
    beats = [data for kind, data in runner.said if kind == messages.BEAT]
    assert beats[-1]["closed"] == [3]  # as of the time when part 5 was given out


def test_a_worker_that_cannot_close_its_part_ends_so_that_the_master_knows(runner, monkeypatch):
    monkeypatch.setattr(FakeShard, "broken", True)
    go(runner, 0)
    assert runner.left.wait(10) and runner.closed() == []


def test_what_the_master_says_twice_changes_nothing(runner, monkeypatch):
    """Before it is ready, while it is sent, when it is told to stop, and when it is closed."""
    monkeypatch.setattr(FakeShard, "lasts", True)
    for _ in range(2):
        go(runner, 3)
    (shard,) = FakeShard.made
    wait_until(lambda: shard.runs == 1)
    for now in (False, False, True, True, False):
        runner.hear(messages.STOP, messages.Stop(now=now))
    wait_until(lambda: shard.drains == [5.0, 0.0])
    shard.stopped.set()
    wait_until(lambda: runner.closed() == [3])
    go(runner, 3)
    gevent.sleep(0.05)
    assert (len(FakeShard.made), shard.runs, shard.drains, runner.closed()) == (1, 1, [5.0, 0.0], [3])


def test_a_worker_says_that_it_is_ready_until_it_is_sent_off(runner, monkeypatch):
    def ready() -> int:
        return sum(kind == messages.READY for kind, _ in runner.said)

    monkeypatch.setattr(module, "BEAT_S", 0.05)
    message = messages.Go(run_id="run", shard=0, t0_ns=0, t0_unix_ns=0)
    runner.hear(messages.ASSIGN, message)
    wait_until(lambda: ready() >= 2)
    runner.hear(messages.GO, message)
    wait_until(lambda: runner.closed() == [0])
    said = ready()
    beats = len(runner.said)
    wait_until(lambda: len(runner.said) > beats)
    assert ready() == said
