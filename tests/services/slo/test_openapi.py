"""The published OpenAPI is true: its parameters, drawn at random and broken at random, never break the service."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.records.synthetic import SyntheticRun


def operations(client: TestClient) -> dict[str, dict[str, Any]]:
    document = client.get("/openapi.json").json()
    return {path: methods["get"] for path, methods in document["paths"].items() if "get" in methods}


def test_every_route_is_described(client: TestClient) -> None:
    found = operations(client)
    assert {
        "/healthz", "/metrics", "/v1/metrics", "/v1/runs", "/v1/runs/{run_id}", "/v1/runs/{run_id}/attainment",
        "/v1/runs/{run_id}/percentiles", "/v1/runs/{run_id}/heatmap", "/v1/runs/{run_id}/timeline",
        "/v1/runs/{run_id}/outcomes", "/v1/runs/{run_id}/engine", "/v1/runs/{run_id}/heatmaps",
        "/v1/runs/{run_id}/findings", "/v1/runs/{run_id}/surface/at", "/v1/runs/{run_id}/surface/use",
        "/v1/runs/{run_id}/knees", "/v1/runs/{run_id}/knees/moves",
        "/v1/runs/{run_id}/heatmap/cell", "/v1/runs/{run_id}/requests/{request_id}/cell",
        "/v1/slos", "/v1/slos/{name}", "/v1/slos/{name}/history", "/v1/alerts",
    } == set(found)  # fmt: skip
    for path, operation in found.items():
        assert operation["description"], path
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description") or parameter["schema"].get("description"), (path, parameter["name"])


def test_enums_are_published(client: TestClient) -> None:
    parameters = operations(client)["/v1/runs/{run_id}/heatmap"]["parameters"]
    schemas = {one["name"]: one["schema"] for one in parameters}
    assert "p95" in schemas["statistic"]["enum"]
    assert "ttft_user_s" in schemas["metric"]["enum"]


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    """Right values and wrong ones, by the schema of a parameter."""
    odd = st.one_of(st.text(max_size=20), st.integers().map(str), st.floats().map(str), st.just("x" * 2000))
    return st.one_of(st.sampled_from(schema["enum"]), odd) if "enum" in schema else odd


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_parameters_break_it(client: TestClient, run: SyntheticRun, data: st.DataObject) -> None:
    found = operations(client)
    path = data.draw(st.sampled_from(sorted(set(found) - {"/metrics"})))
    run_id = data.draw(st.one_of(st.just("closed"), st.just("closed"), st.text(max_size=12)))
    query = {
        one["name"]: data.draw(values_of(one["schema"]))
        for one in found[path].get("parameters", ())
        if one["in"] == "query" and data.draw(st.booleans())
    }
    answer = client.get(re.sub(r"{\w+}", _quoted(run_id), path), params=query)
    assert answer.status_code in {200, 404, 422}, (path, query, answer.text)
    assert answer.status_code in {200, 404} or answer.json()["field"]
    assert "NaN" not in answer.text


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
