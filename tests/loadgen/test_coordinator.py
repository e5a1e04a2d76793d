"""The master's side against workers that refuse, stay silent, stop early or die: fakes that write real shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import gevent
import msgspec
import pytest

from cliffwatch.errors import RunError
from cliffwatch.records.manifest import RunState
from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.records.writer import ShardWriter
from cliffwatch.workload.handover import Share, shared_plans
from cliffwatch.workload.lexicons import estimated_lexicon
from cliffwatch.workload.schedule import schedule
from cliffwatch.workload.spec import Workload, load_workload, preset_names
from loadgen import coordinator as module
from loadgen import losses, messages, orders
from loadgen.accounting import Tally
from loadgen.closing import Plans, recover_run
from loadgen.coordinator import Coordinator
from loadgen.origin import Origin
from loadgen.preparation import Assignment, Preparation
from loadgen.resuming import Resumed, load, roster_of
from loadgen.settings import Settings
from loadgen.target import Target

SPEC = {"requests": 40, "arrivals": {"kind": "constant", "rate": 400}, "cold_start": {"requests": 1}}


def preparation(folder, choice: str = "lost") -> Preparation:
    workload = Workload.model_validate(SPEC)
    return Preparation(
        run_id="run-1", workload=workload,
        settings=Settings("w", "http://h", folder / "run", drain_s=0.1, on_worker_loss=choice),
        workload_text="", slo_text=None, origin=Origin.parse("http://h"), target=Target({"m": None}, None),
        lexicons={"m": estimated_lexicon([(1, 2), (10, 11)])}, notes=(),
    )  # fmt: skip


@dataclass(repr=False)
class FakeRunner:
    """Carries messages to fake workers; `parts` says what each does: how many rows it writes, then how it ends."""

    parts: dict[str, tuple[int, str]]
    sent: list[tuple[str, str, object]] = field(default_factory=list)
    subject: Coordinator | None = None
    loses: set[tuple[str, str]] = field(default_factory=set)  # the first message of a kind to a worker
    tallies: dict[int, tuple[Tally, ShardWriter, Assignment]] = field(default_factory=dict)

    @property
    def clients(self) -> dict[str, object]:
        states = {name: "missing" if end == "dies" else "running" for name, (_, end) in self.parts.items()}
        return {name: SimpleNamespace(state=state) for name, state in states.items()}

    def send_message(self, kind, data, client_id):
        self.sent.append((kind, client_id, data))
        if (kind, client_id) in self.loses:
            self.loses.discard((kind, client_id))
            return
        gevent.spawn(self.act, kind, data, client_id)

    def act(self, kind, data, name):
        count, end = self.parts[name]
        if kind == messages.ASSIGN and end != "silent":
            self.ready(name, data, "no room here" if end == "refuses" else None)
        elif kind == messages.GO:
            tally, writer, assignment = self.tallies[data["shard"]]
            if data["shard"] >= len(self.parts):  # of a part taken over: all of it
                count, end = 40, "finishes"
            ids = msgspec.convert(assignment["ids"], Share)
            plans = (p for p in shared_plans(Workload.model_validate(SPEC), ids) if p is not None)
            for _, plan in zip(range(count), plans, strict=False):
                tally.issued(plan.request_id, plan.intended_ns)
                tally.ended(row(plan.request_id, assignment["shard"], plan.intended_ns))
            if end in {"finishes", "stops early"}:
                self.close(data["shard"], name, cut_short=end == "stops early")
            elif end == "dies":  # the kernel drops a dead worker's lock
                writer._journal.close()
        elif kind == messages.STOP and end in {"waits", "refuses"}:
            for shard in list(self.tallies):
                self.close(shard, name, cut_short=True)

    def ready(self, name, data, refusal):
        if refusal is None:
            writer = ShardWriter(Path(data["run_dir"]), data["shard"])
            self.tallies[data["shard"]] = Tally(data["run_id"], data["shard"], writer), writer, data
        ready = {"run_id": data["run_id"], "shard": data["shard"], "host": "h", "pid": 1, "refusal": refusal}
        self.subject.on_ready(name, ready)

    def close(self, shard, name, *, cut_short):
        if shard in self.tallies:
            tally, writer, _ = self.tallies[shard]
            writer.close()
            self.subject.on_closed(name, messages.plain(tally.report(closed=True, cut_short=cut_short)))


def row(request_id: int, worker: int, intended_ns: int) -> RequestRow:
    return RequestRow(
        request_id=request_id, worker=worker, phase=Phase.MEASURED, endpoint="chat", model="m", batch=1, cache="none",
        input_tokens=9, max_output_tokens=9, intended_ns=intended_ns, sent_ns=intended_ns, ended_ns=intended_ns + 5,
        outcome=Outcome.OK,
    )  # fmt: skip


def conduct(tmp_path, parts: dict[str, tuple[int, str]], interrupt_after_s: float | None = None, choice="lost"):
    runner = FakeRunner(parts)
    subject = runner.subject = Coordinator(runner, preparation(tmp_path, choice), list(parts))
    job = gevent.spawn(subject.conduct)
    gevent.spawn(beat_all, subject, [name for name, (_, end) in parts.items() if end not in {"dies", "silent"}])
    if interrupt_after_s is not None:
        gevent.sleep(interrupt_after_s)
        subject.interrupt("interrupted")
    assert subject.wait(20)
    job.join()
    assert subject.error is None, subject.error
    return subject, runner


def beat_all(subject: Coordinator, names: list[str]) -> None:
    while not subject.wait(0.02):
        for name in names:
            subject.on_beat(name, messages.Beat(run_id="run-1", shards=[], host="h", pid=1, sent_ns=0))


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(losses, "HANDOVER_S", 0.3)
    monkeypatch.setattr(losses, "LEASE_S", 0.2)
    monkeypatch.setattr(losses, "NEWCOMER_WITHIN_S", 0.3)
    monkeypatch.setattr(module, "READY_WITHIN_S", 0.5)
    monkeypatch.setattr(module, "CLOSE_MARGIN_S", 0.5)
    monkeypatch.setattr(module, "_START_DELAY_S", 0.0)


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
    subject = runner.subject = Coordinator(runner, preparation(tmp_path), ["a"])
    gevent.spawn(subject.conduct)
    while not (tmp_path / "run" / "progress.json").exists():
        gevent.sleep(0.01)
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
    first = runner.subject = Coordinator(runner, preparation(tmp_path), ["a"])
    gevent.spawn(first.conduct)
    while not (tmp_path / "run" / "progress.json").exists():
        gevent.sleep(0.01)
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


def test_an_assignment_that_is_lost_on_the_way_is_given_again(tmp_path, monkeypatch):
    """At the start, and at the handover of what the dead worker left."""
    monkeypatch.setattr(orders, "ASSIGN_AGAIN_S", 0.1)
    runner = FakeRunner({"a": (20, "finishes"), "b": (7, "dies")}, loses={(messages.ASSIGN, "b")})
    subject = runner.subject = Coordinator(runner, preparation(tmp_path, "redistribute"), ["a", "b"])
    gevent.spawn(subject.conduct)
    gevent.spawn(says_what_it_holds, runner, "b")
    while not (tmp_path / "run" / "progress.json").exists():
        gevent.sleep(0.01)
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
    subject = runner.subject = Coordinator(runner, preparation(tmp_path), ["a"])
    gevent.spawn(subject.conduct)
    while not (tmp_path / "run" / "progress.json").exists():
        gevent.sleep(0.01)
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
