"""`cliffwatch slo backtest`: what is wrong with its input is said before Prometheus is asked; the rest in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command

SLO = """\
name: chat
objectives:
  - {sli: ttft, threshold: 2.5s, target: 95%}
watch: {engine: vllm}
"""
NOBODY = "http://127.0.0.1:9"  # the port of the discard protocol


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


@pytest.fixture
def slo(tmp_path: Path) -> Path:
    (tmp_path / "slo.yaml").write_text(SLO)
    return tmp_path / "slo.yaml"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "2026-02-01", "--to", "2026-01-01"], "--from: is not before --to"),
        (["--from", "lately"], "--from: must be ISO 8601"),
        (["--to", "2099-01-01"], "--to: is in the future"),
        (["--from", "20s ago"], "hold no two evaluations"),
        (["--from", "4000d ago"], "have too many evaluations"),
        (["--every", "10m"], "--every: is out of bounds"),
        (["--every", "often"], "--every: must be"),
        (["--match-within", "-1s"], "--match-within: is out of bounds"),
        (["--thresholds", "3s"], "--thresholds: between two bucket edges"),
        (["--targets", "100%"], "--targets: must be above 0 %"),
        (["--windows", "fast"], "--windows: must be standard, or pairs"),
        (["--csv", "/nowhere/curve.csv"], "--csv: cannot be written"),
        (["--incidents", "/nowhere/incidents.yaml"], "/nowhere/incidents.yaml: cannot be read"),
        (["--prometheus", "prometheus:9090"], "URL: is no address to ask"),
        (["--prometheus-ca-file", "/nowhere/ca.pem"], "/nowhere/ca.pem: --prometheus-ca-file"),
        (["--prometheus-token-file", "/nowhere/token"], "/nowhere/token"),
    ],
)
def test_wrong_input(slo: Path, command: Command, options: list[str], says: str) -> None:
    ended = command("slo", "backtest", slo, "--prometheus", NOBODY, *options)
    assert ended.code == 2
    assert says in ended.err


def test_nobody_there(slo: Path, command: Command) -> None:
    ended = command("slo", "backtest", slo, "--prometheus", NOBODY)
    assert ended.code == 4
    assert "cannot be asked" in ended.err


def test_secrets_are_not_quoted(slo: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIFFWATCH_PROMETHEUS_BASIC_AUTH", "no-colon-s3cret")
    ended = command("slo", "backtest", slo, "--prometheus", NOBODY)
    assert ended.code == 2
    assert "USER:PASSWORD" in ended.err
    assert "s3cret" not in ended.err
