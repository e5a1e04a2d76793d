"""Series as an engine would expose them.

Written from the catalog alone, not from the compiled rules: the two must agree on what a bad event is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cliffwatch.engines.catalog import Metric, SliSource
from cliffwatch.slo.prometheus.events import edge_under, in_unit, layouts_of, metric_of
from cliffwatch.slo.prometheus.feed import Fed, Feed, Phase, Pod, Series, counter, gauge, labels_of
from cliffwatch.slo.prometheus.matching import value_of
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.slices import Slices
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written, format_share

_ONE_TOKEN = Decimal("0.1")  # answers of one token for each event, where the engine's histogram holds both
_SPARE = Decimal("0.1")  # of the tokens that a good slice has here, those beyond what is promised


def engine_feed(objective: Objective, watch: Watch, *, alone: bool = True) -> Fed:
    """The feed of an objective that compiles; not `alone`: beside others, which may count on another edge."""
    several = "instance" not in watch.match
    source = watch.catalog.slis[objective.sli.value]  # type: ignore[index]
    if objective.sli is Sli.THROUGHPUT:
        assert objective.slices is not None  # noqa: S101  the SLO file's own check
        return _throughput(objective.slices, source, watch, instances=several)
    slices = None if objective.slices is None else sliced(objective.slices)
    if objective.sli is Sli.AVAILABILITY:
        return Fed(_Counters(source, watch), failures_counted=True, instances=several, slices=slices)
    assert objective.threshold is not None  # noqa: S101  the SLO file's own check
    metric = metric_of(watch.catalog, source, watch, "sli")
    return Fed(
        _Histogram(metric, source, watch, objective.threshold, 1 if alone else 0), instances=several, slices=slices
    )


def sliced(slices: Slices) -> tuple[int, Decimal]:
    """The minutes of a slice, and the share of bad events that it allows."""
    assert slices.share is not None  # noqa: S101  the SLO file's own check: only throughput has none
    return round(slices.length / 60), 1 - as_written(slices.share)


def _throughput(slices: Slices, source: SliSource, watch: Watch, *, instances: bool) -> Fed:
    assert slices.tokens_per_s is not None  # noqa: S101  the SLO file's own check
    good_per_s = float(slices.tokens_per_s / (1 - float(_SPARE)))
    feed: Feed = _Tokens(source, watch, good_per_s)
    bad = f"of the tokens is missing from {good_per_s:.4g} a second, {format_share(_SPARE)} of which are spare"
    return Fed(feed, instances=instances, slices=(round(slices.length / 60), _SPARE), bad=bad)


@dataclass(frozen=True, slots=True)
class _Histogram:
    """The edge that counts, and so many neighbours on each side, which would tell if another edge were read."""

    metric: Metric
    source: SliSource
    watch: Watch
    threshold_s: float
    neighbours: int

    def series(self, pod: Pod) -> Series:
        labels = labels_of(self.watch, pod.instance)
        one_token = _ONE_TOKEN if self.source.without else Decimal(0)
        layout, at = self._layout(pod)
        made: Series = {}
        for index in range(max(0, at - self.neighbours), min(len(layout), at + self.neighbours + 1)):
            name = selector(f"{self.metric.name}_bucket", {**labels, "le": _le(layout[index], go=pod.old)})
            made[name] = counter(pod.phases, _within(index - at, one_token))
        made[selector(f"{self.metric.name}_count", labels)] = counter(
            pod.phases, lambda phase: phase.events * (1 + one_token)
        )
        if self.source.without and self.source.without.le is not None:
            le = _le(self.source.without.le, go=pod.old)
            name = selector(f"{self.source.without.metric}_bucket", {**labels, "le": le})
            made[name] = counter(pod.phases, lambda phase: phase.events * one_token)
        return made

    def _layout(self, pod: Pod) -> tuple[Sequence[float], int]:
        """The pod's edges, and the index of the one that counts."""
        threshold = in_unit(self.threshold_s, self.metric)
        usable = [
            (layout, layout.index(edge))
            for layout in layouts_of(self.metric, self.watch)
            if (edge := edge_under(layout, threshold)) is not None
        ]
        return usable[-1 if pod.old else 0]


def _within(offset: int, one_token: Decimal) -> Callable[[Phase], Decimal]:
    """Events under an edge: under the one below none but answers of one token, under the one above all."""
    if offset < 0:
        return lambda phase: phase.events * one_token
    if offset > 0:
        return lambda phase: phase.events * (1 + one_token)
    return lambda phase: phase.events * (1 + one_token) - phase.bad


@dataclass(frozen=True, slots=True)
class _Counters:
    """All events and bad ones, in one metric or in two, whose first may or may not count the bad ones too."""

    source: SliSource
    watch: Watch

    def series(self, pod: Pod) -> Series:
        labels = labels_of(self.watch, pod.instance)
        everything, bad = self.source.events, self.source.bad[0]
        bad_labels = {label: value_of(pattern) for label, pattern in bad.match.items()}
        counts_bad = all(one.metric != bad.metric for one in everything)
        first = everything[0]
        own = {label: value_of(pattern) for label, pattern in first.match.items()}
        if first.metric == bad.metric:
            own |= {label: "other" for label in bad.match if label not in first.match}
        made = {
            selector(first.metric, {**labels, **own, **self.watch.match}): counter(
                pod.phases, lambda phase: phase.events if counts_bad else phase.events - phase.bad
            )
        }
        if not pod.without_bad:
            made[selector(bad.metric, {**labels, **bad_labels, **self.watch.match})] = counter(
                pod.phases, lambda phase: phase.bad
            )
        return made


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Tokens generated, and a request in the batch while there are events: a share of these that is bad is a share of
    the tokens that is missing."""

    source: SliSource
    watch: Watch
    good_per_s: float

    def series(self, pod: Pod) -> Series:
        labels = labels_of(self.watch, pod.instance)
        metric = self.watch.catalog.metric(self.source.metrics[0])
        name = f"{metric.name}_sum" if metric.type == "histogram" else metric.name
        own = {label: value_of(pattern) for one in self.source.events for label, pattern in one.match.items()}
        return {
            selector(name, {**labels, **own}): counter(pod.phases, self._tokens),
            selector(self.watch.catalog.signals["running"], labels): gauge(
                pod.phases, lambda phase: Decimal(phase.events > 0)
            ),
        }

    def _tokens(self, phase: Phase) -> Decimal:
        """A minute's, rounded so that sums of them are exact in binary: else a counter may seem to run backwards."""
        good = 60 * self.good_per_s
        ulp = 2.0 ** (math.frexp(good)[1] - 20)
        share = 1 - phase.bad / phase.events if phase.events else Decimal(0)
        return Decimal(round(good * float(share) / ulp) * ulp)


def _le(edge: float, *, go: bool) -> str:
    """An edge as the client libraries of Python (5.0) or Go (5) write it."""
    text = repr(float(edge))
    return text.removesuffix(".0") if go else text
