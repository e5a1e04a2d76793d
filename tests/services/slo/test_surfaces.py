"""The API of surfaces: untried points, use of the hardware, knees and their moves, of imported measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cliffwatch.records.importing import import_run
from tests.cli.test_surface_along import measured


@pytest.fixture
def run(root: Path, tmp_path: Path) -> str:
    """1 ms a prompt and 10 us a token of each, by length and batch."""
    lines = [
        {"input_tokens": length, "batch": batch, "cache": "none", "ttft": batch * (1e-3 + 1e-5 * length)}
        for length in (512 * 2**k for k in range(6))
        for batch in (1, 2, 4, 8)
    ]
    (tmp_path / "lab.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_run(tmp_path / "lab.jsonl", root / "lab", name="lab", engine="vllm")
    return "/v1/runs/lab/surface/at"


def ask(client: TestClient, path: str, status: int, **asked: object) -> Any:
    answer = client.get(path, params=asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_an_untried_point(client: TestClient, run: str) -> None:
    found = ask(client, run, 200, metric="ttft_s", input_tokens=6144, batch=3)
    assert found["value_s"] == pytest.approx(3 * (1e-3 + 1e-5 * 6144), rel=0.02)
    assert found["low_s"] <= found["value_s"] <= found["high_s"]
    assert (found["run"], found["coverage"], found["cells"], found["extrapolated"]) == ("lab", 0.9, 24, False)
    assert found["says"][0].startswith("p50 of ttft_s at 6k x 3, cache none: 1")


def test_refusals_name_field_and_what_is_allowed(client: TestClient, run: str) -> None:
    outside = ask(client, run, 422, metric="ttft_s", input_tokens=32_768)
    assert outside["field"] == "input_tokens, batch"
    assert "nearest measured: 16k x 1" in outside["allowed"]
    assert ask(client, run, 200, metric="ttft_s", input_tokens=32_768, extrapolate=True)["extrapolated"]
    assert "too far" in ask(client, run, 422, metric="ttft_s", input_tokens=10**9, extrapolate=True)["detail"]
    for field, asked in {
        "input_tokens": {"input_tokens": 0},
        "metric": {"input_tokens": 4096, "metric": "output_rate"},
        "statistic": {"input_tokens": 4096, "metric": "ttft_s", "statistic": "p95"},  # no cell was measured twice
        "cache": {"input_tokens": 4096, "metric": "ttft_s", "cached": True},
    }.items():
        assert ask(client, run, 422, **asked)["field"] == field
    assert ask(client, "/v1/runs/none/surface/at", 404, input_tokens=4096)["title"] == "Unknown run"


def test_knees_and_how_far_they_moved(client: TestClient, root: Path, tmp_path: Path) -> None:
    for name, place in {"before": 16, "after": 8}.items():
        import_run(measured(tmp_path / f"{name}.jsonl", place, seed=place), root / name, name=name, engine="vllm")
    found = ask(client, "/v1/runs/after/knees", 200, metric="ttft_s")
    assert (found["axis"], found["by"], found["unit"]) == ("batch", "input_tokens", "s")
    (curve,) = [one for one in found["curves"] if one["of"] == "1k"]
    (knee,) = curve["breaks"]
    assert knee["low"] <= 8 <= knee["high"]
    assert curve["counts"] == [6] * 10
    assert [x for x, _ in curve["corners"]] == [1, knee["at"], 64]
    assert curve["says"].startswith("at ") and "flat, then growing" in curve["says"]
    told = ask(client, "/v1/runs/after/knees/moves", 200, metric="ttft_s", against="before")
    assert (told["against"], told["axis"], len(told["moves"])) == ("before", "batch", 8)
    assert all(one["low"] <= one["ratio"] <= one["high"] < 1 and one["shown"] for one in told["moves"])
    assert ask(client, "/v1/runs/after/knees", 422, axis="cache")["field"] == "axis"
    assert ask(client, "/v1/runs/after/knees/moves", 404, against="none")["title"] == "Unknown run"
    assert ask(client, "/v1/runs/after/knees/moves", 422)["field"] == "against"


def test_use_of_the_hardware(client: TestClient, run: str) -> None:
    path = "/v1/runs/lab/surface/use"
    found = ask(client, path, 200, hardware="H200", model="llama-3-8b", part="prefill")
    assert found["rows"] == ["512", "1k", "2k", "4k", "8k", "16k"] and found["columns"] == ["1", "2", "4", "8"]
    # 8,192 tokens in 82.9 ms: 114.4 TFLOP of weights' products and 17.6 of attention, of 989.4 TFLOP/s
    assert found["arithmetic"]["values"][4][0] == pytest.approx(131.9e12 / 0.08292 / 989.4e12, rel=0.01)
    assert found["arithmetic"]["lows"][4][0] is None  # nothing was repeated
    assert found["counts"][4] == [1, 1, 1, 1]
    assert "989 TFLOP/s and 4.8 TB/s" in found["says"][0]
    assert ask(client, path, 422, hardware="H200", model="llama-3-8b")["field"] == "metric"  # no ITL was measured
    for field, asked in {
        "hardware": {"model": "llama-3-8b"},
        "model": {"hardware": "H200", "model": "eliza"},
        "part": {"hardware": "H200", "model": "llama-3-8b", "part": "idle"},
        "weights": {"hardware": "A10", "model": "llama-3-8b", "part": "prefill", "weights": "fp8"},
        "tensor_parallel": {"hardware": "H200", "model": "llama-3-8b", "tensor_parallel": 0},
    }.items():
        assert ask(client, path, 422, **asked)["field"] == field
    choices = ask(client, "/v1/metrics", 200)
    assert "H200" in choices["hardware"] and "llama-3-8b" in choices["models"] and "decode" in choices["parts"]
