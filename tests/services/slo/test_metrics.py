"""`/metrics`: parsed by Prometheus' own reader, equal to the rows, bounded in what labels can be."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from cliffwatch.records.manifest import RunState
from services.slo import metrics as module
from tests.records.synthetic import SyntheticRun
from tests.services.slo.conftest import named_run

Samples = dict[str, list[tuple[dict[str, str], float]]]


def scrape(client: TestClient) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def one(samples: Samples, name: str, **labels: str) -> float:
    (value,) = [value for own, value in samples[name] if labels.items() <= own.items()]
    return value


def test_figures_equal_the_api(client: TestClient, run: SyntheticRun) -> None:
    samples = scrape(client)
    judgement = client.get("/v1/runs/closed/attainment").json()["judgement"]
    assert one(samples, "cliffwatch_runs", state="complete") == 1
    requests = [value for labels, value in samples["cliffwatch_run_requests_total"] if labels["run"] == "closed"]
    assert sum(requests) == 4000
    for objective in judgement["objectives"]:
        labels = {"run": "closed", "objective": objective["label"]}
        assert one(samples, "cliffwatch_run_objective_attainment_ratio", **labels) == objective["attainment"]
        assert one(samples, "cliffwatch_run_objective_requests_total", result="good", **labels) == objective["good"]
        budget = 1 - (objective["bad"] / objective["n"]) / (1 - objective["target"])
        assert one(samples, "cliffwatch_run_objective_budget_remaining_ratio", **labels) == pytest.approx(budget)
        assert one(samples, "cliffwatch_run_objective_status", status=objective["status"], **labels) == 1
    assert one(samples, "cliffwatch_run_goodput_ratio", run="closed") == judgement["goodput"]["ratio"]
    p95 = judgement["objectives"][0]["observed"]["p95"]["value"]
    labels = {"run": "closed", "metric": "ttft_user_s", "quantile": "0.95"}
    assert one(samples, "cliffwatch_run_latency_seconds", **labels) == p95


def test_unknown_is_absent_not_zero(root: Path, client: TestClient) -> None:
    named_run(root, "empty", 0, state=RunState.RUNNING)
    samples = scrape(client)
    assert "cliffwatch_run_latency_seconds" not in samples
    assert "cliffwatch_run_objective_attainment_ratio" not in samples
    assert "cliffwatch_run_goodput_ratio" not in samples
    assert one(samples, "cliffwatch_run_requests_total", run="empty", phase="measured", outcome="ok") == 0


def test_damaged_run_does_not_stop_the_scrape(root: Path, client: TestClient, run: SyntheticRun) -> None:
    named_run(root, "cut", 100)
    (root / "cut" / "shards" / "worker-000.parquet").write_bytes(b"PAR1")
    samples = scrape(client)
    assert one(samples, "cliffwatch_run_readable", run="cut") == 0
    assert one(samples, "cliffwatch_run_readable", run="closed") == 1


def test_runs_are_bounded(root: Path, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 2)
    for name in ("a", "b", "c"):
        named_run(root, name, 10)
    samples = scrape(client)
    assert {labels["run"] for labels, _ in samples["cliffwatch_run_info"]} == {"b", "c"}
    assert one(samples, "cliffwatch_runs", state="complete") == 3


def test_routes_are_templates(client: TestClient, run: SyntheticRun) -> None:
    for path in ("/v1/runs/closed", "/v1/runs/x1", "/made/up/1", "/made/up/2", "/static/main.js"):
        client.get(path)
    routes = {labels["route"] for labels, _ in scrape(client)["cliffwatch_http_requests_total"]}
    assert routes == {"/v1/runs/{run_id}", "other"}


def test_openmetrics_is_served_to_who_asks(client: TestClient, run: SyntheticRun) -> None:
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.count("# EOF") == 1
    assert any(family.name == "cliffwatch_run_requests" for family in parse_openmetrics(answer.text))
