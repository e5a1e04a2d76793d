"""The master's side against workers that refuse, stay silent, stop early or die."""

from __future__ import annotations

import gevent
import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.manifest import RunState
from cliffwatch.workload.handover import Share
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload, load_workload, preset_names
from loadgen import coordinator as module
from loadgen import messages
from loadgen.closing import Plans, recover_run
from loadgen.coordinator import Coordinator
from loadgen.preparation import Preparation
from loadgen.resuming import Resumed, load, roster_of
from tests.loadgen.conducted import SPEC, FakeRunner, beat_all, begun, conduct, impatient, preparation  # noqa: F401

pytestmark = pytest.mark.usefixtures("impatient")


def test_a_whole_run_is_complete_and_its_assignments_differ_by_shard_only(tmp_path):
    subject, runner = conduct(tmp_path, {"a": (20, "finishes"), "b": (20, "finishes")})
    manifest = subject.manifest
    assert (manifest.state, manifest.partial_reason) == (RunState.COMPLETE, None)
    assert (manifest.accounting.issued, manifest.accounting.ok) == (40, 40)
    first, second = (data for kind, _, data in runner.sent if kind == messages.ASSIGN)
    assert {key for key in first if first[key] != second[key]} == {"shard", "ids", "users"}
    assert manifest.t0_unix_ns == next(data for kind, _, data in runner.sent if kind == messages.GO)["t0_unix_ns"]


def test_a_dead_workers_unsent_requests_are_lost_and_the_others_go_on(tmp_path):
    subject, _ = conduct(tmp_path, {"a": (20, "finishes"), "b": (7, "dies")})
    manifest = subject.manifest
    assert (manifest.accounting.ok, manifest.accounting.lost) == (27, 13)
    assert manifest.partial_reason == "worker 1 died or was stopped, the others went on"
    assert [worker.state for worker in manifest.workers] == ["finished", "lost"]


@pytest.mark.parametrize(("ends", "lost"), [("dies", 0), ("stops early", 0)])
def test_what_a_worker_left_is_sent_by_the_others_where_that_was_chosen(tmp_path, ends, lost):
    """Worker 0 sends 20 of its 20; of worker 1's 20, the 13 that it did not issue."""
    subject, runner = conduct(tmp_path, {"a": (20, "finishes"), "b": (7, ends)}, choice="redistribute")
    manifest = subject.manifest
    assert (manifest.state, manifest.accounting.ok, manifest.accounting.lost) == (RunState.COMPLETE, 40, lost)
    assert [worker.state for worker in manifest.workers] == ["finished", "handed over", "finished"]
    assert [worker.rows for worker in manifest.workers] == [20, 7, 13]
    assert [name for kind, name, _ in runner.sent if kind == messages.ASSIGN] == ["a", "b", "a"]
    assert "the rest of its schedule went on as worker 2" in manifest.warnings[0]


def test_a_part_that_nobody_can_take_is_lost_after_a_while(tmp_path):
    subject, _ = conduct(tmp_path, {"a": (7, "dies"), "b": (6, "dies")}, choice="redistribute")
    assert subject.manifest.partial_reason == "every worker died or was stopped"
    assert (subject.manifest.accounting.ok, subject.manifest.accounting.issued) == (13, 40)


def test_beats_are_answered_by_what_is_still_the_workers_own(tmp_path):
    subject, runner = conduct(tmp_path, {"a": (20, "finishes"), "b": (20, "finishes")})
    beat = messages.Beat(run_id="run-1", shards=[0], host="h", pid=9, sent_ns=5)
    assert subject.on_beat("a", beat) == messages.Renewal(run_id="run-1", asked=[0], held=[], sent_ns=5)  # it is over
    runner = FakeRunner({"a": (20, "waits"), "b": (20, "waits")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path / "next"), ["a", "b"])
    job = gevent.spawn(subject.conduct)
    gevent.sleep(0.1)
    assert subject.on_beat("a", beat).held == [0]
    assert subject.on_beat("b", beat).held == []  # another's
    other_run = messages.Beat(run_id="run-0", shards=[0], host="h", pid=9, sent_ns=5)
    assert subject.on_beat("a", other_run).held == []
    assert subject.on_beat("c", beat).held == []  # a newcomer
    assert [(kind, name) for kind, name, _ in runner.sent if kind == messages.STANDBY] == [(messages.STANDBY, "c")]
    subject.interrupt("enough")
    job.join()


def test_a_worker_that_was_stopped_by_others_is_accounted_for_alike(tmp_path):
    subject, _ = conduct(tmp_path, {"a": (20, "finishes"), "b": (7, "stops early")})
    assert (subject.manifest.accounting.ok, subject.manifest.accounting.lost) == (27, 13)
    assert subject.manifest.state is RunState.PARTIAL


def test_when_all_are_stopped_the_run_ends_then(tmp_path):
    subject, _ = conduct(tmp_path, {"a": (7, "stops early"), "b": (6, "stops early")})
    assert (subject.manifest.accounting.ok, subject.manifest.accounting.lost) == (13, 0)
    assert subject.manifest.partial_reason == "every worker died or was stopped"
    assert subject.stop_reason == "every worker died or was stopped"  # so that its exit code says so too


def test_a_refusal_ends_the_run_before_it_began(tmp_path):
    subject, runner = conduct(tmp_path, {"a": (20, "waits"), "b": (20, "refuses")})
    assert subject.manifest.partial_reason == "worker 1 on h: no room here"
    assert subject.manifest.accounting.issued == 0
    assert messages.GO not in {kind for kind, _, _ in runner.sent}


def test_a_silent_worker_ends_the_run_before_it_began(tmp_path):
    subject, _ = conduct(tmp_path, {"a": (20, "waits"), "b": (20, "silent")})
    assert "worker 1 ended or did not answer" in subject.manifest.partial_reason


def test_an_interrupt_reaches_every_worker_and_nothing_later_counts(tmp_path):
    subject, runner = conduct(tmp_path, {"a": (5, "waits"), "b": (5, "waits")}, interrupt_after_s=0.3)
    assert {name for kind, name, _ in runner.sent if kind == messages.STOP} == {"a", "b"}
    assert (subject.manifest.state, subject.manifest.accounting.issued) == (RunState.PARTIAL, 10)
    subject.interrupt("again")  # after the end: nothing
    assert subject.stop_reason == "interrupted"


def test_a_folder_that_was_taken_meanwhile_is_an_error_not_a_crash(tmp_path):
    (tmp_path / "run" / "shards").mkdir(parents=True)
    runner = FakeRunner({"a": (1, "finishes")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path), ["a"])
    subject.conduct()
    assert isinstance(subject.error, RunError)
    assert subject.manifest is None


def test_plans_are_found_by_id_in_any_order():
    workload = Workload.model_validate({**SPEC, "requests": 30})
    expected = {plan.request_id: plan for plan in schedule(workload)}
    plans = Plans(workload, {})
    for request_id in (3, 7, 7, 1, 29, 0, 30, 2):
        assert plans.find(request_id) == expected.get(request_id)


@pytest.mark.parametrize("name", preset_names())
def test_an_assignment_carries_the_very_same_schedule(tmp_path, name):
    workload = load_workload(name)
    source = preparation(tmp_path)
    sent = Preparation(**{field: getattr(source, field) for field in source.__slots__} | {"workload": workload})
    received = Workload.model_validate(messages.plain(sent.assignment(0, Share(0, 1), Share(0, 1)))["workload"])
    assert received == workload


def test_a_worker_that_is_ready_for_a_part_of_others_or_too_late_is_not_sent_off(tmp_path):
    runner = FakeRunner({"a": (20, "waits"), "b": (20, "waits")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path), ["a", "b"])
    job = gevent.spawn(subject.conduct)
    gevent.sleep(0.1)
    handed, late = (subject._roster.give(subject._roster.members["a"], Share(90, 1), Share(90, 1)) for _ in range(2))
    handed.handed_over = True
    runner.sent.clear()
    ready = messages.Ready(run_id="run-1", shard=handed.number, host="h", pid=1)
    subject.on_ready("a", messages.plain(ready))
    assert runner.sent == []
    subject.interrupt("enough")
    runner.sent.clear()
    subject.on_ready("a", messages.plain(messages.Ready(run_id="run-1", shard=late.number, host="h", pid=1)))
    assert [kind for kind, _, _ in runner.sent] == [messages.STOP]
    late.closed = True
    job.join()


def test_a_worker_whose_last_word_was_lost_is_asked_for_it_again(tmp_path):
    runner = FakeRunner({"a": (40, "waits")})
    subject = begun(runner, tmp_path)
    gevent.sleep(0.05)

    def beat(shards: list[int], closed: list[int]) -> messages.Renewal:
        said = messages.Beat(run_id="run-1", shards=shards, host="h", pid=1, sent_ns=0, closed=closed)
        return subject.on_beat("a", said)

    assert beat([0], []).unheard == []
    tally, writer, _ = runner.tallies[0]
    writer.close()
    assert beat([], [0]).unheard == [0] and not subject.wait(0.1)
    subject.on_closed("a", messages.plain(tally.report(closed=True)))
    assert beat([], [0]).unheard == []
    assert subject.wait(5) and subject.manifest.state is RunState.COMPLETE
    assert beat([], [0]).unheard == []  # of a run that is over nobody wants to hear


def test_a_master_that_fails_says_so_instead_of_going_on_for_ever(tmp_path, monkeypatch):
    def broken(*_: object) -> None:
        raise TypeError("no such figure")

    monkeypatch.setattr(module, "close", broken)
    runner = FakeRunner({"a": (40, "finishes")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path), ["a"])
    subject.conduct()
    assert subject.wait(0) and subject.manifest is None
    with pytest.raises(RunError, match=r"the master failed \(TypeError.*--recover DIR"):
        raise subject.error


def test_a_run_has_one_master_at_a_time(tmp_path):
    runner = FakeRunner({"a": (40, "waits")})
    first = begun(runner, tmp_path)
    manifest, progress = load(tmp_path / "run")
    another = Coordinator(
        FakeRunner({}), preparation(tmp_path), [], resumed=Resumed(roster_of(progress), manifest.t0_unix_ns)
    )
    another.conduct()
    with pytest.raises(RunError, match="has a master that lives"):
        raise another.error
    with pytest.raises(RunError, match="has a master that lives"):
        recover_run(tmp_path / "run")
    first.interrupt("interrupted")
    assert first.wait(5) and first.error is None
