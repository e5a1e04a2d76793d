"""What the engine did, counted, and its `/metrics` text.

Counting is a list index and an addition (a stream's chunk has 50 µs in all); prometheus_client's own counters take a
lock and a mutex-guarded value each, so it is used for what it does best: the exposition, built at scrape time from
these counts.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.utils import floatToGoString

from services.engine.metric_families import FAMILIES, PRESET, REQUEST_TOKENS, Family, request_token_edges

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Value:
    """A counter, a gauge, or a summary's count and sum."""

    value: float = 0.0
    count: int = 0
    created_s: float = field(default_factory=time.time)

    def add(self, amount: float = 1.0) -> None:
        """Count `amount`."""
        self.value += amount
        self.count += 1


class Histogram:
    """Counts per bucket; `edges` are upper bounds, inclusive."""

    __slots__ = ("counts", "created_s", "edges", "total")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(edges)
        self.counts = [0] * (len(self.edges) + 1)
        self.total = 0.0
        self.created_s = time.time()

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value`, `times` over."""
        self.counts[bisect_left(self.edges, value)] += times
        self.total += value * times


Child = Value | Histogram


class Metrics:
    """All families; a child is found by its family's name and the labels beyond the engine's own."""

    def __init__(self, model_name: str, max_model_len: int) -> None:
        self._base = {"engine": "0", "model_name": model_name}
        self._token_edges = request_token_edges(max_model_len)
        self._families = {family.name: family for family in FAMILIES}
        self._children: dict[str, dict[tuple[str, ...], Child]] = {family.name: {} for family in FAMILIES}
        for family in FAMILIES:
            for labels in PRESET.get(family.name, ((),) if not _own_labels(family) else ()):
                self._child(family.name, labels)
        self.value("vllm:engine_sleep_state", "awake").value = 1.0
        self._registry = CollectorRegistry()
        GCCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def value(self, name: str, *labels: str) -> Value:
        """The counter, gauge or summary of that name and label values; made on first use."""
        child = self._child(name, labels)
        assert isinstance(child, Value)  # noqa: S101  the families table says so
        return child

    def histogram(self, name: str, *labels: str) -> Histogram:
        """The histogram of that name and label values; made on first use."""
        child = self._child(name, labels)
        assert isinstance(child, Histogram)  # noqa: S101  the families table says so
        return child

    def expose(self) -> bytes:
        """The text that `/metrics` answers with; names keep their colons."""
        return generate_latest(self._registry, escaping="allow-utf-8")

    def collect(self) -> Iterator[Metric]:
        """Families with their samples, for prometheus_client."""
        for name, children in self._children.items():
            family = self._families[name]
            metric = Metric(name, family.help, family.kind)
            own = _own_labels(family)
            for values, child in children.items():
                labels = {key: value for key, value in self._base.items() if key in family.labels}
                labels |= zip(own, values, strict=True)
                _add_samples(metric, family, dict(sorted(labels.items())), child)
            yield metric

    def _child(self, name: str, labels: tuple[str, ...]) -> Child:
        children = self._children[name]
        child = children.get(labels)
        if child is None:
            family = self._families[name]
            edges = self._token_edges if family.edges == REQUEST_TOKENS else family.edges
            assert not isinstance(edges, str)  # noqa: S101  only the one name exists
            child = children[labels] = Histogram(edges) if family.kind == "histogram" else Value()
        return child


def _own_labels(family: Family) -> tuple[str, ...]:
    return tuple(label for label in family.labels if label not in ("model_name", "engine"))


def _edge_text(edge: float) -> str:
    """An edge as the Python client writes it: `0.3`, `16384.0`, `1e+06`, `+Inf`."""
    return str(floatToGoString(edge))  # type: ignore[no-untyped-call]  # the library has no annotations there


def _add_samples(metric: Metric, family: Family, labels: dict[str, str], child: Child) -> None:
    name = family.name
    if isinstance(child, Histogram):
        running = 0
        for edge, count in zip((*child.edges, float("inf")), child.counts, strict=True):
            running += count
            metric.add_sample(f"{name}_bucket", {**labels, "le": _edge_text(edge)}, running)
        metric.add_sample(f"{name}_count", labels, running)
        metric.add_sample(f"{name}_sum", labels, child.total)
    elif family.kind == "summary":
        metric.add_sample(f"{name}_count", labels, child.count)
        metric.add_sample(f"{name}_sum", labels, child.value)
    else:
        metric.add_sample(f"{name}_total" if family.kind == "counter" else name, labels, child.value)
    if family.kind != "gauge":
        metric.add_sample(f"{name}_created", labels, child.created_s)
