"""`/metrics`: what a face's families become; counts that add up."""

from __future__ import annotations

import pytest

from services.engine.faces import FACES
from services.engine.metric_families import Family, Feed, request_token_edges
from services.engine.metrics import Histogram, Metrics


def expose(metrics: Metrics) -> list[str]:
    return FACES["vllm"].expose(metrics, "")[0].decode().splitlines()


def one(kind: str, *feeds: Feed, name: str = "it", own: tuple[str, ...] = (), **more: object) -> Metrics:
    family = Family(name, kind, "words", {"model": "tiny"}, own, feeds=feeds, **more)
    return Metrics([family], created=False, process=False)


def test_edges_of_token_histograms_follow_the_model() -> None:
    assert request_token_edges(40960)[-3:] == (5000.0, 10000.0, 20000.0)
    assert request_token_edges(5) == (1.0, 2.0, 5.0)


def test_a_value_on_an_edge_counts_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value, times in ((1.0, 1), (1.5, 2), (9.0, 3)):
        histogram.observe(value, times)
    assert (histogram.counts, histogram.total) == ([1, 2, 3], 31.0)


def test_buckets_are_cumulative_and_names_keep_their_colons() -> None:
    metrics = FACES["vllm"].metrics("0.33.0", "tiny", 4096)
    metrics.observe("ttft_s", 0.3, tags={"streaming": "true"})
    metrics.observe("prompt_tokens", 7)
    lines = expose(metrics)
    base = 'vllm:time_to_first_token_seconds_bucket{engine="0",'
    assert base + 'le="0.25",model_name="tiny"} 0.0' in lines
    assert base + 'le="0.5",model_name="tiny"} 1.0' in lines
    assert base + 'le="+Inf",model_name="tiny"} 1.0' in lines
    assert 'vllm:prompt_tokens_total{engine="0",model_name="tiny"} 7.0' in lines


@pytest.mark.parametrize(
    ("kind", "line"), [("counter", "it_total"), ("gauge", "it")]
)  # a counter adds up, a gauge is what it was last
def test_what_a_feed_becomes(kind: str, line: str) -> None:
    metrics = one(kind, Feed("ttft_s", scale=1000), name=line)
    metrics.observe("ttft_s", 0.25, 2)
    metrics.observe("ttft_s", 0.5)
    assert f'{line}{{model="tiny"}} {1000.0 if kind == "counter" else 500.0}' in expose(metrics)


def test_a_series_appears_with_its_tags_and_zeros_can_be_left_out() -> None:
    metrics = one("counter", Feed("finished", ("{reason}", "x"), zeros=False), name="n_total", own=("why", "what"))
    assert not [line for line in expose(metrics) if line.startswith("n_total")]
    metrics.observe("finished", 0.0, tags={"reason": "stop"})
    metrics.observe("finished", tags={"reason": "length", "streaming": "true"})
    lines = [line for line in expose(metrics) if line.startswith("n_total")]
    assert lines == ['n_total{model="tiny",what="x",why="length"} 1.0']


def test_what_nobody_takes_is_let_go() -> None:
    metrics = one("counter", Feed("finished"), name="n_total")
    metrics.observe("cancelled")
    assert 'n_total{model="tiny"} 0.0' in expose(metrics)
