"""A reading over HTTP: what Prometheus holds, lacks, refuses and delays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cliffwatch.cli.prometheus import Prometheus, prometheus
from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.slo.live.read import SloStatus, read_status
from cliffwatch.slo.live.status import State
from cliffwatch.slo.live.watched import Watched, load_watched, slo_files
from tests.slo.live.records import SLO, WINDOWS, records
from tests.slo.live.scripted import Scripted, serving, vector

Files = dict[str, tuple[Watched, ...]]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "slo.yaml").write_text(SLO)
    return load_watched([tmp_path / "slo.yaml"])


@pytest.fixture
def server() -> Iterator[Scripted]:
    with serving(records(0.001)) as scripted:
        yield scripted


def read(files: Files, server: Scripted) -> SloStatus:
    (slo,) = read_status(files, Prometheus(server.url).ask_all).slos
    return slo


def test_records_become_a_status(files: Files, server: Scripted) -> None:
    """0.1 % bad of a budget of 1 %: nine tenths left; 10 a second for 30 days are 25,920,000 events."""
    slo = read(files, server)
    (objective,) = slo.objectives
    (group,) = objective.groups
    assert (slo.state, objective.recorded, group.labels) == (State.GOOD, True, {"model_name": "m"})
    assert group.budget_left == pytest.approx(0.9)
    assert group.events == 25_920_000
    assert not slo.pages


def test_an_outage_pages(files: Files, server: Scripted) -> None:
    server.script = records(0.5)
    slo = read(files, server)
    assert slo.pages
    assert slo.state is State.EXHAUSTED


@pytest.mark.parametrize(("counted", "fires"), [(4.0, False), (5.0, True), (None, True)])
def test_alerts_go_by_the_recorded_count(files: Files, server: Scripted, counted: float | None, fires: bool) -> None:
    """As the compiled ones do; those of rules that record no count went by the rate."""
    server.script = records(0.5, counted=counted)
    (objective,) = read(files, server).objectives
    assert bool(objective.groups[0].firing) is fires


def test_one_instance_without_the_edge_is_named(files: Files, server: Scripted) -> None:
    server.script = records(0.001, without="b:1")
    slo = read(files, server)
    assert slo.state is State.MIXED_LAYOUT
    assert any("no bucket edge at 2.5 s on b:1" in note for note in slo.objectives[0].notes)


def test_one_address_in_two_jobs_is_two_targets(files: Files, server: Scripted) -> None:
    """Two engines behind one instance label: the edge of one is not the other's."""
    usual = records(0.001)
    edges = [
        ({"job": job, "instance": "a:1", "model_name": "m", "le": le}, 1)
        for job, le in (("new", "2.5"), ("old", "1.0"))
    ]
    server.script = lambda path, query: (200, vector(*edges)) if query.startswith("group by") else usual(path, query)
    slo = read(files, server)
    assert slo.state is State.MIXED_LAYOUT
    assert any("no bucket edge at 2.5 s on old a:1:" in note for note in slo.objectives[0].notes)
    assert any(query.startswith("group by (job, instance, le") for _, query in server.asked)


def test_no_records_are_read_from_raw_series(files: Files, server: Scripted) -> None:
    """Asked by the same expressions, every window in one question; an empty Prometheus has no data, not zero."""
    server.script = lambda path, query: (
        200,
        b'{"status":"success","data":{"alerts":[]}}' if "alerts" in path else vector(),
    )
    slo = read(files, server)
    assert slo.state is State.NO_DATA
    assert sorted(query.count("label_replace") for _, query in server.asked if "label_replace" in query) == [2, 14]
    assert slo.objectives[0].groups[0].attainment is None


def test_what_fails_for_one_objective_is_a_note(files: Files, server: Scripted) -> None:
    whole = records(0.001)
    refused = b'{"status":"error","errorType":"execution","error":"query processing would load too many samples"}'
    server.script = lambda path, query: (422, refused) if "sum_over_time" in query else whole(path, query)
    (objective,) = read(files, server).objectives
    assert objective.groups[0].events is None
    assert "too many samples" in objective.notes[0]


def test_warnings_are_passed_on(files: Files, server: Scripted) -> None:
    server.script = records(0.001, warnings=["PromQL warning: some stores did not answer"])
    assert read_status(files, Prometheus(server.url).ask_all).warnings == (
        "PromQL warning: some stores did not answer",
    )


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"<html>login</html>", "no answer of Prometheus"),
        (200, b'{"status":"success","data":{"result":[{"metric":{"a":1}}]}}', "no answer of Prometheus"),
        (200, b'{"status":"success"}', "no answer of Prometheus"),
        (200, b"\xff\xfe", "no answer of Prometheus"),
        (503, b'{"status":"error","error":"starting up"}', "answered 503 starting up"),
        (401, b"who are you", "answered 401"),
    ],
)
def test_what_is_no_answer_is_said(files: Files, server: Scripted, status: int, body: bytes, words: str) -> None:
    server.script = lambda path, query: (status, body)
    with pytest.raises(UnreachableError, match=words):
        read(files, server)


def test_nan_is_not_known(files: Files, server: Scripted) -> None:
    whole = records(0.001)
    server.script = lambda path, query: (200, whole(path, query)[1].replace(b'"0.001"', b'"NaN"'))
    assert read(files, server).objectives[0].groups[0].attainment is None


def test_a_slow_server_is_left_in_time(files: Files, server: Scripted) -> None:
    server.delay_s = 1.0
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="timed out"):
        read_status(files, Prometheus(server.url, timeout_s=0.1).ask_all)
    assert time.monotonic() - began < 0.9


def test_the_token_comes_from_the_environment_or_a_file(
    server: Scripted, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_TOKEN", "from-env")
    monkeypatch.setenv("CLIFFWATCH_API_KEY", "of-the-engine")
    (tmp_path / "token").write_text("from-file\n")
    for client, token in (
        (prometheus(server.url), "from-env"),
        (prometheus(server.url, tmp_path / "token"), "from-file"),
    ):
        server.tokens.clear()
        read_status(files, client.ask_all)
        assert set(server.tokens) == {f"Bearer {token}"}
        assert token not in repr(client)


def test_bad_addresses_and_token_files(tmp_path: Path) -> None:
    for address in ("prometheus:9090", "ftp://x", "http://user:word@x", "http://", "http://[", "http://x:99999"):
        with pytest.raises(InputError):
            prometheus(address)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    for name in ("missing", "empty", "binary"):
        with pytest.raises(InputError, match=name):
            prometheus("http://x", tmp_path / name)


def test_a_token_that_no_header_can_hold_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_TOKEN", "hidden\nX-Other: 1")
    with pytest.raises(InputError) as caught:
        prometheus("http://127.0.0.1:1")
    assert "hidden" not in str(caught.value)


def test_folders_of_files_and_names_that_stand_twice(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text(SLO)
    assert [path.name for path in slo_files([tmp_path])] == ["a.yaml", "b.yml"]
    with pytest.raises(InputError, match=r"b\.yml: name: stands in another file too"):
        load_watched(slo_files([tmp_path]))
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no SLO file"):
        slo_files([tmp_path / "none"])


def test_more_bad_events_than_events_are_said(files: Files, server: Scripted) -> None:
    server.script = records(1.5)
    (objective,) = read(files, server).objectives
    assert objective.groups[0].attainment == 0
    assert any("more bad events than events" in note for note in objective.notes)


def test_a_composite_burns_by_its_own_ratio(tmp_path: Path, server: Scripted) -> None:
    """Of two parts, weighted alike, one without a bad event and one with 40 %: 20 % bad, whatever their traffic."""
    text = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 99%}
  - {sli: e2e, threshold: 60s, target: 99%}
watch:
  engine: vllm
  composites: [{name: both, of: [ttft-2.5s-99pct, e2e-60s-99pct], target: 99%}]
"""
    (tmp_path / "both.yaml").write_text(text)
    own = {"slo": "chat", "objective": "both"}
    values = (("events:rate", 100), ("bad:rate", 1), ("bad:ratio", 0.2))
    series = [
        ({"__name__": f"cliffwatch_slo:{what}{window}", **own}, value) for window in WINDOWS for what, value in values
    ]
    whole = records(0.0)
    server.script = lambda path, query: (200, vector(*series)) if query.startswith("{__name__") else whole(path, query)
    (slo,) = read_status(load_watched([tmp_path / "both.yaml"]), Prometheus(server.url).ask_all).slos
    composite = slo.objectives[-1]
    assert (composite.one.id, composite.state) == ("both", State.BURNING)
    assert composite.groups[0].burns[0].long.burn_rate == pytest.approx(20)


def test_a_server_that_answers_another_question_is_said_to(files: Files, server: Scripted) -> None:
    """No records, and series that are not what the expressions give: unlabelled, with an edge that is no number."""
    server.script = lambda _path, _query: (200, vector(({"le": "soon", "slo": "s"}, 1.0)))
    (objective,) = read(files, server).objectives
    assert objective.state is State.NO_DATA
    assert all(group.attainment is None for group in objective.groups)
    assert any("answers another question" in note for note in objective.notes)
