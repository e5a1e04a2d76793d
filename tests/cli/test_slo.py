"""`cliffwatch slo`: check, init, presets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.slo.spec import presets
from tests.cli.command import Command


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
