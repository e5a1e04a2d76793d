"""What the engine did, counted in a face's metric families, and their text.

Counting is a list index and an addition (a stream's chunk has 50 µs in all); prometheus_client's own counters take a
lock and a mutex-guarded value each, so it is used for what it does best: the exposition, built at scrape time from
these counts.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.utils import floatToGoString

from services.engine.metric_families import Family, Feed, Quantity

Tags = Mapping[str, str]
NO_TAGS: Tags = {}


class Child(Protocol):
    """The series of one set of label values."""

    created_s: float

    def observe(self, value: float, times: int = 1) -> None:
        """Take a value, `times` over."""

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """(ending of the name, further labels, value) of each sample."""


class Counter:
    """A running sum."""

    __slots__ = ("created_s", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.created_s = time.time()

    def observe(self, value: float, times: int = 1) -> None:
        """Add `value`, `times` over."""
        self.total += value * times

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """The sum."""
        yield "", {}, self.total


class Gauge(Counter):
    """The last value."""

    __slots__ = ()

    def observe(self, value: float, times: int = 1) -> None:  # noqa: ARG002  the same call for every child
        """Take `value` in place of the one before."""
        self.total = value


class Summary(Counter):
    """A count and a sum, without quantiles."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value`, `times` over."""
        self.total += value * times
        self.count += times

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Count and sum."""
        yield "_count", {}, self.count
        yield "_sum", {}, self.total


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

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Cumulative buckets, count and sum."""
        running = 0
        for edge, count in zip((*self.edges, float("inf")), self.counts, strict=True):
            running += count
            yield "_bucket", {"le": _edge_text(edge)}, running
        yield "_count", {}, running
        yield "_sum", {}, self.total


def _edge_text(edge: float) -> str:
    """An edge as the Python client writes it: `0.3`, `16384.0`, `1e+06`, `+Inf`."""
    return str(floatToGoString(edge))  # type: ignore[no-untyped-call]  # the library has no annotations there


_PLAIN = {"counter": Counter, "gauge": Gauge, "summary": Summary}


class _Tap:
    """A family at one of its feeds: the series is known beforehand, or told by the observation's tags."""

    __slots__ = ("_family", "_feed", "_fixed", "_series")

    def __init__(self, series: Series, feed: Feed) -> None:
        self._series = series
        self._feed = feed
        told = series.family.late or any(label.startswith("{") for label in feed.labels)
        self._fixed = None if told else series.child(feed.labels)

    def take(self, value: float, times: int, tags: Tags) -> None:
        feed = self._feed
        if not value and not feed.zeros:
            return
        child = self._fixed or self._series.child(tuple(label.format_map(tags) for label in feed.labels))
        child.observe(value * feed.scale, times)


class Series:
    """The series of one family, by the values of its own labels."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.children: dict[tuple[str, ...], Child] = {}
        for labels in family.preset or (() if family.own or family.late else ((),)):
            self.child(labels)

    def child(self, labels: tuple[str, ...]) -> Child:
        """The series of these label values; made on first use."""
        child = self.children.get(labels)
        if child is None:
            kind = self.family.kind
            child = self.children[labels] = Histogram(self.family.edges) if kind == "histogram" else _PLAIN[kind]()
        return child


class _Process:
    """The families of the process, which is as old as its metrics: a drill may let it start anew."""

    def __init__(self) -> None:
        self._started_s = time.time()
        self._real = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client."""
        for metric in self._real.collect():
            if metric.name == "process_start_time_seconds":
                metric.samples = [sample._replace(value=self._started_s) for sample in metric.samples]
            yield metric


class Metrics:
    """A face's families, fed by what the engine observes.

    Args:
        created: whether each series says when it began, as the Python client does in one process.
        process: whether the families of the process itself are among them.
    """

    def __init__(self, families: Sequence[Family], *, created: bool, process: bool) -> None:
        self._created = created
        self.series = [Series(family) for family in families]
        self._taps: dict[str, list[_Tap]] = {}
        for series in self.series:
            for feed in series.family.feeds:
                self._taps.setdefault(feed.quantity, []).append(_Tap(series, feed))
        self.registry = CollectorRegistry()
        if process:
            GCCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)
            self.registry.register(_Process())
        self.registry.register(self)

    def observe(self, quantity: Quantity, value: float = 1.0, times: int = 1, tags: Tags = NO_TAGS) -> None:
        """Hand a value, `times` over, to every family that takes the quantity."""
        for tap in self._taps.get(quantity, ()):
            tap.take(value, times, tags)

    def collect(self) -> Iterator[Metric]:
        """Families with their samples, for prometheus_client."""
        for series in self.series:
            family = series.family
            if not series.children:
                continue
            bare = family.name.removesuffix("_total") if family.kind == "counter" else family.name
            metric = Metric(bare, family.help, family.kind)
            for values, child in series.children.items():
                labels = dict(sorted({**family.base, **dict(zip(family.own, values, strict=True))}.items()))
                for ending, more, value in child.samples():
                    metric.add_sample(family.name + ending, {**labels, **more}, value)
                if self._created and family.kind != "gauge":
                    metric.add_sample(f"{bare}_created", labels, child.created_s)
            yield metric
