"""A master conducting fake workers: they write real shards, and refuse, stay silent, stop early or die."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import gevent
import msgspec
import pytest

from cliffwatch.records.schema import Outcome, Phase, RequestRow
from cliffwatch.records.writer import ShardWriter
from cliffwatch.workload.handover import Share, shared_plans
from cliffwatch.workload.lexicons import estimated_lexicon
from cliffwatch.workload.spec import Workload
from loadgen import coordinator, losses, messages
from loadgen.accounting import Tally
from loadgen.coordinator import Coordinator
from loadgen.origin import Origin
from loadgen.preparation import Assignment, Preparation
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


def begun(runner: FakeRunner, folder: Path, choice: str = "lost") -> Coordinator:
    """A master with these workers that has sent its run off."""
    subject = runner.subject = Coordinator(runner, preparation(folder, choice), list(runner.parts))
    gevent.spawn(subject.conduct)
    until_begun(folder)
    return subject


def until_begun(folder: Path) -> None:
    while not (folder / "run" / "progress.json").exists():
        gevent.sleep(0.01)


@pytest.fixture
def impatient(monkeypatch):
    """A master's limits in tenths of a second."""
    monkeypatch.setattr(losses, "HANDOVER_S", 0.3)
    monkeypatch.setattr(losses, "LEASE_S", 0.2)
    monkeypatch.setattr(losses, "NEWCOMER_WITHIN_S", 0.3)
    monkeypatch.setattr(coordinator, "READY_WITHIN_S", 0.5)
    monkeypatch.setattr(coordinator, "CLOSE_MARGIN_S", 0.5)
    monkeypatch.setattr(coordinator, "_START_DELAY_S", 0.0)
