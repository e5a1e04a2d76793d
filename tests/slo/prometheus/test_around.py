"""Scrape configuration, ServiceMonitor and Alertmanager's routes: what they hold. Real tools read them in
tests/integration/test_monitoring_config.py."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cliffwatch.slo.prometheus.forms import FORMS
from cliffwatch.slo.prometheus.rules import compile_rules, watch_of
from cliffwatch.slo.spec import parse_slo


def written(form: str, *, objective: str = "{sli: ttft, threshold: 2.5s, target: 95%}", **watch: object) -> str:
    document = {"name": "chat_eu", "objectives": [yaml.safe_load(objective)], "watch": {"engine": "vllm", **watch}}
    slo = parse_slo(yaml.safe_dump(document), source="f.yaml")
    return FORMS[form].text(slo.name, watch_of(slo, source="f.yaml"), compile_rules(slo))


def read(form: str, **watch: Any) -> Any:
    return yaml.safe_load(written(form, **watch))


@pytest.mark.parametrize(
    ("engine", "path", "port"),
    [("vllm", "/metrics", "PORT"), ("trtllm", "/prometheus/metrics", "PORT"), ("triton", "/metrics", "8002")],
)
def test_engines_are_scraped_where_their_metrics_are(engine: str, path: str, port: str) -> None:
    mine = {
        "engine": engine,
        "objective": "{sli: promql, name: p, target: 99%, promql: {all: 'a[{window}]', bad: 'b[{window}]'}}",
    }
    text = written("scrape", **mine)
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job["metrics_path"] == path
    assert f'"HOST:{port}"' in text
    (endpoint,) = read("service-monitor", **mine)["spec"]["endpoints"]
    assert endpoint["path"] == path
    assert endpoint["port"] == ("http" if port == "PORT" else "metrics")


def test_the_interval_and_the_labels_are_those_that_the_rules_count_on() -> None:
    watch = {
        "scrape_interval": "1.5s",
        "match": {"job": "l$m", "env": "a$1"},
        "target_labels": ["env", "zone"],
    }
    text = written("scrape", **watch)
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert (job["job_name"], job["scrape_interval"]) == ("l$m", "1500ms")
    assert job["relabel_configs"] == [{"target_label": "env", "replacement": "a$$1"}]  # $1 would be a group
    assert "labels: {zone: ...}" in text

    monitor = read("service-monitor", **watch)
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert monitor["metadata"]["name"] == "chat-eu"  # a name that Kubernetes takes
    assert monitor["spec"]["targetLabels"] == ["zone"]
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["interval"] == "1500ms"
    assert {"targetLabel": "job", "replacement": "l$$m"} in endpoint["relabelings"]


def test_engine_down_silences_burns_only_where_each_instance_has_its_budget() -> None:
    one, other = read("alertmanager", group_by=["model_name"]), read("alertmanager", group_by=["instance"])
    assert [rule["equal"] for rule in one["inhibit_rules"]] == [["objective", "model_name"]]
    assert [rule["equal"] for rule in other["inhibit_rules"]] == [["objective", "instance"], ["instance"]]


def test_secrets_stand_in_files_only() -> None:
    receivers = read("alertmanager")["receivers"]
    hooks = [hook for receiver in receivers for hook in receiver.get("webhook_configs", ())]
    assert [hook.get("url", "") for hook in hooks] == ["http://127.0.0.1:8080/v1/alertmanager", "", ""]
    assert "credentials_file" in hooks[0]["http_config"]["authorization"]
