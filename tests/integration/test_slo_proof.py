"""`cliffwatch slo test` with the real promtool: compiled rules hold, and where deployed rules are wrong is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.servers.monitoring import PROMETHEUS_BIN, promtool

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]

PROMTOOL = PROMETHEUS_BIN / "promtool"
TTFT = "{sli: ttft, threshold: 2.5s, target: 99.9%}"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsys, monkeypatch)


def slo_file(folder: Path, objective: str, watch: str = "engine: vllm") -> Path:
    path = folder / "slo.yaml"
    path.write_text(f"name: chat\nobjectives:\n  - {objective}\nwatch: {{{watch}}}\n")
    return path


def test_the_workbooks_alerts_fire_when_its_arithmetic_says(tmp_path: Path, command: Command) -> None:
    """99.9 % over 30 days: 14.4, 6, 3, 1 times the budget, over what is bad, of each long window."""
    ended = command("slo", "test", slo_file(tmp_path, TTFT), "--promtool", PROMTOOL, "--out", tmp_path, "--json")
    assert ended.code == 0, ended.out
    found = json.loads(ended.out)
    (objective,) = found["objectives"]
    assert [(one["alert"], one["severity"], one["factor"]) for one in objective["alerts"]] == [
        ("SloBurn1h", "page", 14.4), ("SloBurn6h", "page", 6), ("SloBurn1d", "ticket", 3), ("SloBurn3d", "ticket", 1),
    ]  # fmt: skip
    times = {(cell["bad"], cell["alert"]): cell["fires_after_s"] for cell in objective["table"]}
    assert times[1.0, "SloBurn1h"] == pytest.approx(51.84)
    assert times[0.02, "SloBurn1h"] == pytest.approx(2592)
    assert times[0.01, "SloBurn1h"] is None
    assert times[0.01, "SloBurn3d"] == pytest.approx(25_920)
    assert all(cell["proven"] for cell in objective["table"])
    assert (found["passed"], objective["misses"]) == (True, [])
    for path in tmp_path.glob("*-every-[36]0m.test.yml"):
        promtool("test", "rules", path)


def test_throughput_and_own_promql_are_proven_and_what_cannot_be_is_named(tmp_path: Path, command: Command) -> None:
    """Slices of 10 minutes at 99 %: an outage makes one bad after a tenth of it, and 14.4 % of an hour is 8.64 min; an
    alert needs a whole slice, 10 minutes, so it fires after 11."""
    path = slo_file(tmp_path, "{sli: throughput, slices: {length: 10m, tokens_per_s: 333.3}, target: 99%}")
    gate = "{sli: promql, name: NAME, target: 99%, promql: {all: 'ALL', bad: 'BAD'}}"
    read = gate.replace("NAME", "gate").replace("ALL", "sum(rate(asked[{window}]))")
    read = read.replace("BAD", 'sum(rate(asked{code=~"5.."}[{window}])) or vector(0)')
    unread = gate.replace("NAME", "odd").replace("ALL", "increase(asked[{window}])").replace("BAD", "rate(b[{window}])")
    path.write_text(path.read_text().replace("watch:", f"  - {read}\n  - {unread}\nwatch:"))
    ended = command("slo", "test", path, "--promtool", PROMTOOL, "--json")
    assert ended.code == 0, ended.out
    tokens, own, odd = json.loads(ended.out)["objectives"]
    assert [one["proven"] for one in (tokens, own, odd)] == [True, True, None]
    times = {(cell["bad"], cell["alert"]): cell["fires_after_s"] for cell in tokens["table"]}
    assert times[1.0, "SloBurn1h"] == pytest.approx(660)
    assert times[0.05, "SloBurn1h"] is None
    assert odd["unproven"].startswith("`all` of its PromQL is no sum(rate(")


def test_deployed_rules_that_differ_are_told(tmp_path: Path, command: Command) -> None:
    """Half of the long window's threshold: too soon by half of 7.2 h; the short one stays as it was."""
    path = slo_file(tmp_path, "{sli: availability, target: 90%}", "engine: triton, match: {instance: a}")
    rules = tmp_path / "deployed.yml"
    command("slo", "compile", path, "--out", rules)
    text = rules.read_text()
    changed = text.replace(
        'bad:ratio1d{slo="chat",objective="availability-90pct"} > 0.3',
        'bad:ratio1d{slo="chat",objective="availability-90pct"} > 0.15',
    )
    assert changed != text
    rules.write_text(changed)
    ended = command("slo", "test", path, "--promtool", PROMTOOL, "--rules", rules)
    assert ended.code == 1
    assert "WRONG chat availability-90pct SloBurn1d, scenario '100 % bad, SloBurn1d': expected silent 7 h" in ended.out
    assert "seen firing first 3.67 h after the onset" in ended.out
    assert ended.out.count("WRONG chat") == 1


def test_a_composite_that_weighs_otherwise_is_told(tmp_path: Path, command: Command) -> None:
    """Nine to one deployed as one to one: with one share in all parts it is alike, with one bad alone it is not."""
    path = tmp_path / "slo.yaml"
    path.write_text(
        "name: chat\nobjectives:\n  - {sli: ttft, name: first, threshold: 2.5s, target: 95%}\n"
        "  - {sli: availability, name: whole, target: 99%}\nwatch:\n  engine: vllm\n  composites:\n"
        "    - {name: both, of: [first, whole], weights: [9, 1], target: 99%}\n"
        "    - {name: worst, kind: any, of: [first, whole]}\n"
    )
    rules = tmp_path / "deployed.yml"
    command("slo", "compile", path, "--out", rules)
    text = rules.read_text()
    changed = text.replace('objective="first"} * 9', 'objective="first"} * 1').replace("* 0 + 9", "* 0 + 1")
    assert changed != text
    rules.write_text(changed)
    ended = command("slo", "test", path, "--promtool", PROMTOOL, "--rules", rules, "--json")
    assert ended.code == 1
    found = json.loads(ended.out)
    assert [one["proven"] for one in (*found["objectives"], *found["composites"])] == [True, True, False, True]
    both, worst = found["composites"]
    alone = {miss["scenario"] for miss in both["misses"]}
    assert alone == {"first alone is bad", "whole alone is bad"}
    assert all(cell["proven"] is not False for cell in (*both["table"], *worst["table"]))


def test_rules_that_promtool_refuses_are_wrong_input(tmp_path: Path, command: Command) -> None:
    rules = tmp_path / "deployed.yml"
    rules.write_text("groups: [{name: a, rules: [{record: a, expr: 'sum('}]}]\n")
    ended = command("slo", "test", slo_file(tmp_path, TTFT), "--promtool", PROMTOOL, "--rules", rules)
    assert ended.code == 2
    assert "is refused by promtool: " in ended.err
