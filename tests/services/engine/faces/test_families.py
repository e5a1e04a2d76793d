"""Metrics of SGLang's, Triton's and TensorRT-LLM's faces: beside recorded ones, and by version."""

from __future__ import annotations

from pathlib import Path

import pytest

from cliffwatch.engines.detect import detect
from cliffwatch.engines.exposition import read_exposition
from services.engine.faces import FACES
from services.engine.faces.vllm import CACHE_CONFIG
from services.engine.metrics import Metrics
from tests.services.engine.faces.recorded import assert_the_same, edges, parse

TAGS = {
    "streaming": "true",
    "reason": "length",
    "limit": "max_num_queued_reqs",
    "position": "0",
    "handler": "/v1/completions",
    "method": "POST",
    "status": "200",
    "group": "2xx",
}
TAGS |= dict.fromkeys(CACHE_CONFIG, "16")


def fed(face: str, version: str = "") -> Metrics:
    """Every feed has had one observation."""
    one = FACES[face]
    metrics = one.metrics(one.spoken(version), "tiny", 4096)
    for quantity in {feed.quantity for show in one.shows.values() for feed in show.feeds}:
        metrics.observe(quantity, 1.0, tags=TAGS)
    return metrics


def text(face: str, version: str = "", accept: str = "") -> str:
    return FACES[face].expose(fed(face, version), accept)[0].decode()


@pytest.mark.parametrize(
    ("face", "record", "beyond"),
    [
        # not in the record, since nothing was retracted there
        ("sglang", "sglang-0.5.23.under-load.prom", {"sglang:num_retracted_requests"}),
        # the recorded server had another backend, and its first-response histogram was off
        ("triton", "triton-2.51.0-pytriton-0.7.0.under-load.prom", {"nv_trt_llm_", "nv_llm_", "nv_inference_first"}),
    ],
)
def test_what_is_exposed_is_as_recorded(shared_dir: Path, face: str, record: str, beyond: set[str]) -> None:
    mine = parse(text(face))
    theirs = parse((shared_dir / "metrics" / record).read_text(encoding="utf-8"))
    unknown = {name for name in mine if name not in theirs}
    assert {name for name in unknown if not name.startswith(tuple(beyond))} == set()
    for name in mine.keys() - unknown:
        assert_the_same(mine[name], theirs[name])


@pytest.mark.parametrize(
    ("face", "version", "since", "until"),
    [
        ("vllm", "0.8.0", "0.6", "0.8.5"),
        ("vllm", "0.33.0", "0.32.0", None),
        ("sglang", "", "0.5", None),
        ("triton", "", "2.40", None),
        ("trtllm", "1.1", "1.0", "1.3"),
        ("trtllm", "", "1.3", None),
    ],
)
def test_detection_names_the_face_and_its_versions(face: str, version: str, since: str, until: str | None) -> None:
    found = detect(read_exposition(text(face, version)))
    assert found is not None
    assert (found.engine.name, found.since, found.until) == (face, since, until)
    assert found.missing == ()


@pytest.mark.parametrize("face", FACES)
def test_every_family_is_in_the_catalog_with_its_type_labels_and_edges(face: str) -> None:
    catalog = FACES[face].engine
    version = FACES[face].version
    known = {metric.name.removesuffix("_total"): metric for metric in catalog.metrics}
    exposed = parse(text(face))
    for name, family in exposed.items():
        if name.endswith("_created") or name.startswith(("python_", "process_")):
            continue
        metric = known[name.removesuffix("_total")]
        assert metric.in_version(version), name
        assert family.type == metric.type, name
        own = {label for sample in family.samples for label in sample.labels} - {"le", *FACES[face].labels}
        assert own == set(FACES[face].shows[metric.name].own or metric.labels), name
        if metric.edges is not None:
            assert edges(family)[:-1] == list(catalog.edges_of(metric, version) or ()), name
    assert len(exposed) > 10


def test_names_without_prefix_before_1_3() -> None:
    old, new = parse(text("trtllm", "1.2")), parse(text("trtllm", "1.3"))
    assert {name for name in old if not name.endswith("_created")} == {
        "time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds",
        "request_queue_time_seconds", "request_success",
    }  # fmt: skip
    assert all(name.startswith("trtllm_") for name in new)


def test_sglangs_colons_are_for_those_who_can_read_them() -> None:
    plain = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    assert "sglang_token_usage{" in text("sglang", accept=plain)
    assert "sglang:token_usage{" in text("sglang", accept="text/plain;version=0.0.4")


def test_triton_writes_whole_numbers_and_no_total() -> None:
    lines = text("triton").splitlines()
    assert 'nv_inference_request_success{model="tiny",version="1"} 1' in lines
    assert 'nv_inference_first_response_histogram_ms_bucket{model="tiny",version="1",le="500"} 0' in lines
    assert 'nv_inference_first_response_histogram_ms_bucket{model="tiny",version="1",le="2000"} 1' in lines
    assert 'nv_inference_queue_duration_us{model="tiny",version="1"} 1000000' in lines


def test_tensorrt_llm_skips_zeros() -> None:
    metrics = FACES["trtllm"].metrics("1.3.0", "tiny", 4096)
    metrics.observe("queue_s", 0.0, tags=TAGS)
    metrics.observe("e2e_s", 0.5, tags=TAGS)
    lines = FACES["trtllm"].expose(metrics, "")[0].decode()
    assert 'request_queue_time_seconds_count{engine_type="undefined",model_name="tiny"} 0.0' in lines
    assert 'e2e_request_latency_seconds_count{engine_type="undefined",model_name="tiny"} 1.0' in lines
