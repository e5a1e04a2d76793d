"""The metrics of requests: the same names whether one worker's rows or the sum over all of them are shown."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from itertools import chain

from cliffwatch.records.counted import LABELS, LAG_EDGES_S, Counted, Edges
from loadgen.metrics import families
from loadgen.metrics.exposition import Labels, histograms, samples


def build_info() -> Iterator[str]:
    """Which version this is."""
    labels = {"version": version("cliffwatch"), "python": platform.python_version()}
    return samples(families.BUILD_INFO, [(labels, 1)])


def of_requests(counted: Counted, edges: Edges, own: Labels) -> Iterator[str]:
    """Text of everything that is counted by labels; `own` are the labels that every sample has."""
    labelled = [({**own, **dict(zip(LABELS, one.labels, strict=True))}, one) for one in counted.sets]
    yield from samples(families.REQUESTS, ((labels, one.requests) for labels, one in labelled))
    yield from samples(families.INPUT_TOKENS, ((labels, one.input_tokens) for labels, one in labelled))
    yield from samples(families.OUTPUT_TOKENS, ((labels, one.output_tokens) for labels, one in labelled))
    yield from chain.from_iterable(
        histograms(families.FIGURES[figure], edges[figure], [(labels, one.histograms[n]) for labels, one in labelled])
        for n, figure in enumerate(edges)
    )
    lags = [({**own, "phase": phase.value}, buckets) for phase, buckets in counted.lags.items()]
    yield from histograms(families.SEND_LAG, LAG_EDGES_S, lags)


def of_flow(issued: int, in_flight: int, own: Labels) -> Iterator[str]:
    """Text of what was issued and what has not ended."""
    yield from samples(families.ISSUED, [(own, issued)])
    yield from samples(families.IN_FLIGHT, [(own, in_flight)])
