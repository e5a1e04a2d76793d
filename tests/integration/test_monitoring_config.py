"""Prometheus, Alertmanager and Compose themselves accept the shipped configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cliffwatch.slo.prometheus.files import rule_file
from cliffwatch.slo.prometheus.forms import FORMS
from cliffwatch.slo.prometheus.rules import compile_rules, watch_of
from cliffwatch.slo.spec import load_slo, parse_slo
from tests.servers.engines import ROOT
from tests.servers.monitoring import tool

pytestmark = [pytest.mark.beside, pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]


def test_prometheus_accepts_its_configuration_and_finds_the_rules() -> None:
    assert "2 rule files found" in tool("promtool", "check", "config", "deploy/prometheus/prometheus.yml")


@pytest.mark.parametrize("file", sorted((ROOT / "deploy/slo").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_rules_are_as_their_slo_file_says(file: Path) -> None:
    """In `deploy/`, change the SLO file and compile it again."""
    compiled = rule_file(compile_rules(load_slo(str(file))))
    assert compiled == (ROOT / f"deploy/prometheus/rules/{file.stem}.yml").read_text()


@pytest.mark.parametrize("name", ["alertmanager.yml", "alertmanager-webhook.yml"])
def test_alertmanager_accepts_its_configuration(name: str) -> None:
    tool("amtool", "check-config", f"deploy/alertmanager/{name}")


def _compiled(form: str, into: Path, **watch: object) -> Path:
    document = {
        "name": "chat",
        "objectives": [{"sli": "ttft", "threshold": 2.5, "target": 0.95}],
        "watch": {"engine": "vllm", **watch},
    }
    slo = parse_slo(yaml.safe_dump(document), source="slo.yaml")
    path = into / f"{form}.yml"
    path.write_text(FORMS[form].text(slo.name, watch_of(slo, source="slo.yaml"), compile_rules(slo)))
    return path


def test_prometheus_accepts_what_is_compiled_for_scraping(tmp_path: Path) -> None:
    labels = {"match": {"job": "vllm", "env": "a$b"}, "target_labels": ["env"], "scrape_interval": "1.5s"}
    _compiled("scrape", tmp_path, **labels)
    _compiled("prometheus", tmp_path, **labels)
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "chat.yml").write_text('- targets: ["127.0.0.1:8000"]\n')
    config = {"scrape_config_files": ["scrape.yml"], "rule_files": ["prometheus.yml"]}
    (tmp_path / "all.yml").write_text(yaml.safe_dump(config))
    said = tool("promtool", "check", "config", tmp_path / "all.yml")
    assert "1 rule files found" in said
    assert "WARNING" not in said


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ("slo=chat severity=page objective=x", "cliffwatch,page"),
        ("slo=chat severity=ticket objective=x", "cliffwatch,ticket"),
        ("slo=chat severity=unheard_of", "cliffwatch,page"),
        ("slo=another severity=page", "shown-only"),
    ],
)
def test_alertmanager_routes_alerts_of_the_slo(labels: str, receivers: str, tmp_path: Path) -> None:
    config = _compiled("alertmanager", tmp_path, group_by=["instance"])
    tool("amtool", "check-config", config)
    routed = tool("amtool", "config", "routes", "test", f"--config.file={config}", *labels.split())
    assert routed.strip() == receivers
