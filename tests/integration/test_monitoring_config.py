"""Prometheus, Alertmanager and Compose themselves accept the shipped configuration."""

from __future__ import annotations

import pytest

from tests.servers.engines import ROOT
from tests.servers.monitoring import tool

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("prometheus_tools")]


def test_prometheus_accepts_its_configuration_and_finds_the_rules() -> None:
    assert "1 rule files found" in tool("promtool", "check", "config", "deploy/prometheus/prometheus.yml")


def test_rules_do_what_their_tests_say() -> None:
    tool("promtool", "test", "rules", *sorted((ROOT / "deploy/prometheus/tests").glob("*.yml")))


@pytest.mark.parametrize("name", ["alertmanager.yml", "alertmanager-webhook.yml"])
def test_alertmanager_accepts_its_configuration(name: str) -> None:
    tool("amtool", "check-config", f"deploy/alertmanager/{name}")
