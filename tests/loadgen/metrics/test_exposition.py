"""The text that Prometheus reads."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from cliffwatch.stats.histogram import Histogram
from loadgen.metrics.exposition import Family, histograms, samples, summary

GAUGE = Family("test_gauge", "gauge", "What it\nis, in \\ two lines.")
SECONDS = Family("test_seconds", "histogram", "Time.")


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.text(min_size=1).filter(lambda text: "\r" not in text), st.floats(allow_nan=False))
def test_any_label_value_and_any_number_come_through(value: str, number: float) -> None:
    found = parsed("".join(samples(GAUGE, [({"a": value, "b": ""}, number)])))
    assert found == {("test_gauge", (("a", value),)): number}


def test_a_family_says_once_what_it_is_and_is_absent_without_values() -> None:
    text = "".join(samples(GAUGE, [({"a": "1"}, 1), ({"a": "2"}, 2)]))
    assert text.startswith("# HELP test_gauge What it\\nis, in \\\\ two lines.\n# TYPE test_gauge gauge\n")
    assert text.count("# ") == 2
    assert list(samples(GAUGE, [])) == list(histograms(SECONDS, (1.0,), [({}, (0.0, []))])) == []


def test_a_histogram_counts_up_to_each_edge() -> None:
    edges = (0.001, 0.25, 1.0, 2560.0)
    histogram = Histogram(edges)
    for value in (0.0005, 0.25, 0.3, 5000.0):
        histogram.observe(value)
    (piece,) = histograms(SECONDS, edges, [({"a": "1"}, histogram.buckets()), ({"a": "2"}, (0.0, []))])
    found = parsed(piece)
    counts = [found["test_seconds_bucket", (("a", "1"), ("le", le))] for le in ("0.001", "0.25", "1", "2560", "+Inf")]
    assert counts == [1, 2, 3, 3, 4]
    assert found["test_seconds_count", (("a", "1"),)] == 4
    assert math.isclose(found["test_seconds_sum", (("a", "1"),)], 5000.5505)


@given(st.lists(st.floats(1e-6, 1e7), min_size=1, max_size=5, unique=True).map(sorted))
def test_an_edge_reads_back_as_the_number_that_it_is(edges: list[float]) -> None:
    (piece,) = histograms(SECONDS, tuple(edges), [({}, (1.0, [(0, 1)]))])
    found = [float(dict(labels)["le"]) for name, labels in parsed(piece) if name == "test_seconds_bucket"]
    assert found == [*edges, math.inf]


def test_a_summary_has_its_quantiles_and_their_n() -> None:
    family = Family("test_seconds", "summary", "Time.")
    found = parsed("".join(summary(family, [({"metric": "ttft"}, {0.5: 0.1, 0.99: 2.0}, 7)])))
    assert found == {
        ("test_seconds", (("metric", "ttft"), ("quantile", "0.5"))): 0.1,
        ("test_seconds", (("metric", "ttft"), ("quantile", "0.99"))): 2.0,
        ("test_seconds_count", (("metric", "ttft"),)): 7,
    }
