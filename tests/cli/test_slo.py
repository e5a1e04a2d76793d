"""`cliffwatch slo`: check, init, presets."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from cliffwatch.cli import slo_status
from cliffwatch.slo.spec import load_slo, presets
from tests.cli.command import Command
from tests.slo.live.records import SLO, records
from tests.slo.live.scripted import serving


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def test_check_says_what_is_promised(command: Command) -> None:
    ended = command("slo", "check", "chat")
    assert ended.code == 0
    assert "TTFT ≤ 2.5 s: 95 % of requests, decided from 200 at the latest" in ended.out
    assert "availability: 99.9 % of requests, decided from 10,000 at the latest" in ended.out


def test_check_names_the_fault(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text("name: a\nobjectives:\n  - {sli: ttft, threshold: 1s, target: 100%}\n")
    ended = command("slo", "check", path)
    assert ended.code == 2
    assert f"{path}: objectives[0].target" in ended.err
    assert "100 % leaves no budget" in ended.err


def test_init_writes_a_preset_that_passes_check_and_never_overwrites(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "mine.yaml"
    assert command("slo", "init", path, "--preset", "longtail").code == 0
    assert command("slo", "check", path).code == 0
    path.write_text("mine")
    again = command("slo", "init", path)
    assert again.code == 2
    assert "exists already" in again.err
    assert path.read_text() == "mine"
    assert command("slo", "init", tmp_path / "no" / "folder.yaml").code == 2
    assert "allowed: chat, demo" in command("slo", "init", tmp_path / "x.yaml", "--preset", "nope").err
    assert not (tmp_path / "x.yaml").exists()


def test_presets_are_listed_with_their_promises(command: Command) -> None:
    out = command("slo", "presets").out
    assert all(f"{name}: " in out for name in presets())
    assert "ITL ≤ 50 ms: 99 %" in out


WATCHED = (
    "name: mine\nobjectives:\n  - {sli: ttft, threshold: 2.5s, target: 99%}\n"
    "  - {sli: availability, target: 99.9%}\nwatch: {engine: vllm}\n"
)


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    path = tmp_path / "slo.yaml"
    path.write_text(WATCHED)
    return path


def test_compile_prints_rules_alone_and_notes_beside(watched: Path, command: Command) -> None:
    ended = command("slo", "compile", watched)
    assert ended.code == 0
    groups = yaml.safe_load(ended.out)["groups"]
    assert [group["name"] for group in groups] == ["mine-ttft-2.5s-99pct", "mine-availability-99.9pct", "mine-health"]
    assert "note: availability: " in ended.err


def test_compile_writes_the_file_it_would_print(watched: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "rules.yml"
    ended = command("slo", "compile", watched, "--out", out)
    assert ended.code == 0
    assert out.read_text() == command("slo", "compile", watched).out
    rules = sum(len(group["rules"]) for group in yaml.safe_load(out.read_text())["groups"])
    assert ended.out.startswith(f"wrote {out}: {rules} rules, ")


def test_compile_for_the_operator(watched: Path, command: Command) -> None:
    document = yaml.safe_load(command("slo", "compile", watched, "--format", "operator").out)
    assert (document["kind"], document["metadata"]["name"]) == ("PrometheusRule", "mine")


def test_compile_refuses_a_path_that_cannot_be_written(watched: Path, tmp_path: Path, command: Command) -> None:
    for out in (tmp_path, tmp_path / "no" / "rules.yml", watched / "rules.yml"):
        ended = command("slo", "compile", watched, "--out", out)
        assert (ended.code, ended.out) == (2, "")
        assert f"cliffwatch: {out}: cannot be written: " in ended.err


def test_compile_refuses_forms_and_files_it_cannot_make_rules_of(watched: Path, command: Command) -> None:
    form = command("slo", "compile", watched, "--format", "yaml")
    assert (form.code, form.out) == (2, "")
    assert "--format: is no form of rules; got 'yaml'; allowed: prometheus, operator" in form.err
    for name in presets():
        preset = command("slo", "compile", name)
        assert (preset.code, preset.out) == (2, "")
        assert f"{name}: watch: is missing; allowed: watch: " in preset.err


def test_testing_needs_promtool(
    watched: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = command("slo", "test", watched)
    assert absent.code == 4
    assert "promtool: is not on this machine; allowed: promtool 2.42 or newer" in absent.err
    for program, says in (("nothing", "is no program"), (sys.executable, "is no promtool")):
        ended = command("slo", "test", watched, "--promtool", program)
        assert (ended.code, ended.out) == (2, "")
        assert f"--promtool: {says}" in ended.err


def test_testing_refuses_files_and_folders_that_cannot_be_used(watched: Path, command: Command) -> None:
    assert "watch: is missing" in command("slo", "test", "chat").err
    folder = command("slo", "test", watched, "--promtool", sys.executable, "--out", watched)
    assert (folder.code, folder.out) == (2, "")
    assert f"{watched}: cannot be made: " in folder.err
    rules = command("slo", "test", watched, "--rules", watched / "none.yml")
    assert (rules.code, rules.out) == (2, "")


def test_status_is_shown_again_until_ctrl_c_and_says_when_it_is_old(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slo.yaml").write_text(SLO)
    with serving(records(0.001)) as server:
        naps: list[float] = []

        def nap(seconds: float) -> None:
            naps.append(seconds)
            server.script = lambda _path, _query: (503, b'{"status":"error","error":"starting up"}')
            if len(naps) == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(slo_status, "time", SimpleNamespace(sleep=nap))
        ended = command("slo", "status", tmp_path / "slo.yaml", "--prometheus", server.url, "--watch")
    assert ended.code == 130
    first, _, second = ended.out.partition("OLD:")
    assert first.count("90.0 %") == 2  # the budget left, and again beside the reason why there is no newer
    assert "starting up" in second


def test_status_takes_either_json_or_watch(tmp_path: Path, command: Command) -> None:
    (tmp_path / "slo.yaml").write_text(SLO)
    ended = command("slo", "status", tmp_path, "--prometheus", "http://127.0.0.1:1", "--json", "--watch")
    assert ended.code == 2
    assert "--watch, --json" in ended.err


def test_export_and_import_give_the_same_file_again(watched: Path, tmp_path: Path, command: Command) -> None:
    openslo, again = tmp_path / "openslo.yaml", tmp_path / "again.yaml"
    assert command("slo", "export", watched, "--out", openslo).code == 0
    assert command("slo", "import", openslo, "--out", again).code == 0
    assert load_slo(again) == load_slo(watched)
    assert command("slo", "import", openslo).out == again.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["export", "chat", "--format", "sloth"], "openslo"),
        (["import", "FILE", "--from", "word"], "openslo, sloth, pyrra"),
        (["import", "FILE", "--engine", "steam"], "vllm"),
        (["import", "FILE"], "--from"),
        (["import", "FILE", "--from", "sloth"], "service"),
        (["import", "nowhere.yaml"], "cannot be read"),
        (["export", "chat", "--out", "nowhere/x.yaml"], "cannot be written"),
    ],
)
def test_exchange_refuses_in_words(arguments: list[str], told: str, watched: Path, command: Command) -> None:
    ended = command("slo", *(str(watched) if one == "FILE" else one for one in arguments))
    assert ended.code == 2
    assert told in ended.err


@pytest.mark.parametrize("form", ["scrape", "service-monitor", "alertmanager"])
def test_compile_writes_what_stands_around_the_rules(form: str, watched: Path, command: Command) -> None:
    ended = command("slo", "compile", watched, "--format", form)
    assert ended.code == 0
    assert ended.err == ""
    assert isinstance(yaml.safe_load(ended.out), dict)


def test_too_large_an_answer_is_a_server_that_cannot_be_asked(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slo.yaml").write_text(SLO)
    monkeypatch.setattr("cliffwatch.cli.prometheus.MAX_BYTES", 20)
    with serving(records(0.001)) as server:
        ended = command("slo", "status", tmp_path / "slo.yaml", "--prometheus", server.url)
    assert ended.code == 4
    assert "answers with too much; allowed: up to 20 bytes" in ended.err
