"""What a client can do wrong, and what a damaged folder does: a status, a problem in words, never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cliffwatch.errors import RunError
from cliffwatch.records.manifest import RunState
from services.slo.app import create_app
from services.slo.middleware import SECURITY_HEADERS
from services.slo.store import RunStore
from tests.records.synthetic import SyntheticRun
from tests.services.slo.conftest import named_run

PARTS = ("", "/attainment", "/percentiles", "/heatmap", "/timeline", "/outcomes")


def refused(client: TestClient, path: str, status: int) -> dict[str, Any]:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    return problem


@pytest.mark.parametrize("part", PARTS)
def test_unknown_run(client: TestClient, part: str) -> None:
    problem = refused(client, f"/v1/runs/nope{part}", 404)
    assert (problem["field"], problem["value"]) == ("run", "'nope'")


@pytest.mark.parametrize(
    "run_id", ["%00", "..", "%2e%2e", "..%5c..", "a%5cb", "%2e", "x" * 300, "%ff", "%F0%9F%92%A9", " "]
)
def test_ids_that_no_run_has(client: TestClient, run_id: str) -> None:
    for part in PARTS:
        assert client.get(f"/v1/runs/{run_id}{part}").status_code == 404, part


@pytest.mark.parametrize(
    "run_id", ["..%2fsecret", "%2e%2e%2fsecret", "..%2f..%2fetc%2fpasswd", "%2fetc", "closed%2f..%2f..%2fsecret"]
)
def test_no_id_leads_out_of_the_folder(root: Path, client: TestClient, run: SyntheticRun, run_id: str) -> None:
    (root.parent / "secret").mkdir()
    (root.parent / "secret" / "manifest.json").write_text(run.manifest.model_dump_json(), encoding="utf-8")
    for part in PARTS:
        refused(client, f"/v1/runs/{run_id}{part}", 404)


def test_no_link_leads_out_of_the_folder(root: Path, client: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    named_run(outside, "hidden", 10)
    (root / "link").symlink_to(outside / "hidden")
    refused(client, "/v1/runs/link", 404)
    assert client.get("/v1/runs").json()["total"] == 0


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ("heatmap?metric=latency", "metric", "ttft_s, "),
        ("heatmap?metrc=ttft_s", "metrc", "the parameters "),
        ("heatmap?statistic=p42", "statistic", "p50, "),
        ("heatmap?rows=outcome", "rows", "input_tokens"),
        ("heatmap?columns=error", "columns", "batch"),
        ("heatmap?rows=batch", "rows, columns", None),
        ("heatmap?row_bins=octaves", "row_bins", "auto, values"),
        ("heatmaps?facet=tokens", "facet", "input_tokens"),
        ("heatmap/cell?row=1024", "column", None),
        ("heatmap/cell?row=1000&column=1", "row", "a key of input_tokens"),
        ("heatmap/cell?row=1024&column=one", "column", "a key of batch"),
        ("heatmap/cell?row=1e999&column=1", "row", "a key of input_tokens"),
        ("heatmap/cell?row=1024&column=1&limit=201", "limit", "200"),
        ("requests/999999/cell", "request_id", "as the cells list them"),
        ("requests/-1/cell", "request_id", None),
        ("heatmap?threshold=abc", "threshold", None),
        ("heatmap?statistic=attainment&threshold=inf", "threshold", None),
        ("heatmap?statistic=attainment", "threshold", None),
        ("heatmap?threshold=1", "threshold", None),
        ("timeline?bins=0", "bins", "1 or more"),
        ("timeline?bins=501", "bins", "500 or less"),
        ("timeline?bins=1e3", "bins", "a whole number"),
        ("timeline?bins=", "bins", "a whole number"),
        ("percentiles?phase=hot", "phase", "measured"),
        ("percentiles?metric=ttft_s'%20OR%201=1--", "metric", "ttft_s"),
        ("outcomes?limit=3", "limit", "the parameters phase"),
    ],
)
def test_bad_parameters(client: TestClient, run: SyntheticRun, query: str, field: str, allowed: str | None) -> None:
    problem = refused(client, f"/v1/runs/closed/{query}", 422)
    assert problem["field"] == field
    assert allowed is None or allowed in problem["allowed"]


def test_huge_value_is_shortened(client: TestClient, run: SyntheticRun) -> None:
    problem = refused(client, "/v1/runs/closed/heatmap?metric=" + "x" * 5000, 422)
    assert len(problem["value"]) <= 80


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1"])
def test_bad_limit(client: TestClient, limit: str) -> None:
    assert refused(client, f"/v1/runs?limit={limit}", 422)["field"] == "limit"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client: TestClient, run: SyntheticRun, method: str) -> None:
    answer = client.request(method, "/v1/runs/closed", content=b"x")
    assert answer.status_code == 405
    assert answer.json()["allowed"] == "GET"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_truncated_shard_of_a_closed_run(root: Path, client: TestClient, run: SyntheticRun, content: bytes) -> None:
    (root / "closed" / "shards" / "worker-001.parquet").write_bytes(content)
    for part in PARTS:
        problem = refused(client, f"/v1/runs/closed{part}", 409)
        assert problem["file"] == "worker-001.parquet"
        assert str(root) not in str(problem)


def test_shard_cut_in_its_data(root: Path, client: TestClient, run: SyntheticRun) -> None:
    """The footer still reads, so only the query itself can notice."""
    path = root / "closed" / "shards" / "worker-001.parquet"
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    path.write_bytes(data)
    for part in PARTS[1:]:
        problem = refused(client, f"/v1/runs/closed{part}", 409)
        assert str(root) not in str(problem)


def test_damaged_part_of_a_live_run_may_be_retried(root: Path, client: TestClient, live: SyntheticRun) -> None:
    (root / "live" / "shards" / "worker-009.part-0000.parquet").write_bytes(b"PAR1")
    answer = client.get("/v1/runs/live/heatmap")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\0"])
def test_damaged_manifest(root: Path, client: TestClient, run: SyntheticRun, text: str) -> None:
    (root / "closed" / "manifest.json").write_text(text, encoding="utf-8")
    for part in PARTS:
        assert refused(client, f"/v1/runs/closed{part}", 409)["file"] == "manifest.json"


def test_faulty_slo_file_is_a_damaged_run(root: Path, client: TestClient, run: SyntheticRun) -> None:
    (root / "closed" / "slo.yaml").write_text("name: x\nobjectives: [{sli: speed, target: 2}]", encoding="utf-8")
    problem = refused(client, "/v1/runs/closed/attainment", 409)
    assert problem["file"] == "slo.yaml"
    assert client.get("/v1/runs/closed/heatmap").status_code == 200


def test_folder_without_shards(root: Path, client: TestClient) -> None:
    named_run(root, "bare", 0, state=RunState.RUNNING)
    (root / "bare" / "shards").rmdir()
    assert refused(client, "/v1/runs/bare/heatmap", 503)["detail"]


def test_folder_that_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(RunError, match="cannot be read"):
            RunStore(path)


def test_folder_removed_while_serving(root: Path, client: TestClient, run: SyntheticRun) -> None:
    moved = root.parent / "moved"
    root.rename(moved)
    refused(client, "/v1/runs/closed", 404)
    assert refused(client, "/v1/runs", 503)["detail"]


def test_every_response_has_security_headers(client: TestClient, run: SyntheticRun) -> None:
    for path in ("/", "/static/main.js", "/assets/cliffwatch.css", "/v1/runs", "/v1/runs/nope", "/x", "/metrics"):
        headers = client.get(path).headers
        for name, value in SECURITY_HEADERS.items():
            assert headers[name] == value, path
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/assets/../html.py"]
)
def test_static_files_stay_in_their_folder(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_an_unexpected_error_is_a_problem_too(root: Path, run: SyntheticRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.slo.grid_views.RowsSource", lambda _: 1 / 0)
    with TestClient(create_app(RunStore(root)), raise_server_exceptions=False) as client:
        problem = refused(client, "/v1/runs/closed/heatmap", 500)
    assert "division" not in problem["detail"]
