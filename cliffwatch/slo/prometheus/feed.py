"""Series as an engine would expose them, of so many events and bad events a minute: what promtool's tests are fed with.

Written from the catalog alone, not from the compiled rules: the two must agree on what a bad event is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from cliffwatch.engines.catalog import Metric, SliSource
from cliffwatch.slo.prometheus.events import edge_under, in_unit, layouts_of, metric_of
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.sli import Sli
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch

Series = dict[str, str]  # a series in Prometheus's notation: its values in promtool's, a minute apart

_ONE_TOKEN = Decimal("0.1")  # answers of one token for each event, where the engine's histogram holds both


@dataclass(frozen=True, slots=True)
class Phase:
    """Even traffic for some minutes.

    Attributes:
        events, bad: a minute; `bad` of them are bad.
        restarted: every counter starts again at 0.
        gone: nothing is exposed.
    """

    minutes: int
    events: Decimal = Decimal(0)
    bad: Decimal = Decimal(0)
    restarted: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """One instance of the engine.

    Attributes:
        old: it has the oldest bucket layout that the objective can be counted on, and spells edges as Go does (`5`, not
            `5.0`).
        without_bad: it exposes no series of bad events.
    """

    phases: tuple[Phase, ...]
    instance: str = "a"
    old: bool = False
    without_bad: bool = False


class Feed(Protocol):
    """How an objective's events are exposed."""

    def series(self, pod: Pod) -> Series: ...


def why_not_fed(objective: Objective) -> str | None:
    """Why the objective's events cannot be made up; None where they can."""
    if objective.promql is not None:
        return "what series the file's own PromQL counts is not known"
    if objective.sli is Sli.THROUGHPUT:
        return "it counts tokens of slices, not events"
    return None


def feed_of(objective: Objective, watch: Watch) -> Feed:
    """The feed of an objective that compiles and can be fed."""
    engine = watch.catalog
    source = engine.slis[objective.sli.value]  # type: ignore[index]
    metric = metric_of(engine, source, watch, "sli")
    if objective.sli is Sli.AVAILABILITY:
        return _Counters(source, watch)
    assert objective.threshold is not None  # noqa: S101  the SLO file's own check
    return _Histogram(metric, source, watch, objective.threshold)


@dataclass(frozen=True, slots=True)
class _Histogram:
    """The edge that counts, and its neighbours, which would tell if another edge were read."""

    metric: Metric
    source: SliSource
    watch: Watch
    threshold_s: float

    def series(self, pod: Pod) -> Series:
        labels = labels_of(self.watch, pod.instance)
        one_token = _ONE_TOKEN if self.source.without else Decimal(0)
        layout, at = self._layout(pod)
        made: Series = {}
        for index in range(max(0, at - 1), min(len(layout), at + 2)):
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
        bad_labels = {label: one_of(pattern) for label, pattern in bad.match.items()}
        counts_bad = all(one.metric != bad.metric for one in everything)
        first = everything[0]
        own = {label: one_of(pattern) for label, pattern in first.match.items()}
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


def labels_of(watch: Watch, instance: str) -> dict[str, str]:
    """Labels of one group and instance, as the rules match them."""
    return {**dict.fromkeys(watch.group_by, "g"), "instance": instance, **watch.match}


def counter(phases: Sequence[Phase], per_minute: Callable[[Phase], Decimal]) -> str:
    """Values of a counter, from minute 0 on; one that appears does so at 0."""
    total, was_gone = Decimal(0), phases[0].gone
    parts = ["_" if was_gone else "0"]
    for phase in phases:
        if phase.gone:
            parts.append(f"_x{phase.minutes}")
        else:
            rise = per_minute(phase)
            if was_gone or phase.restarted:
                total = -rise if was_gone else Decimal(0)
            total += rise
            parts.append(f"{_plain(total)}+{_plain(rise)}x{phase.minutes - 1}")
            total += rise * (phase.minutes - 1)
        was_gone = phase.gone
    return " ".join(parts)


def one_of(pattern: str) -> str:
    """A value that one of the catalog's label patterns matches."""
    value = pattern.split("|")[0].replace(".+", "x").replace(".", "0")
    assert re.fullmatch(pattern, value)  # noqa: S101  the catalog's own patterns, each tested
    return value


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}" if number else "0"


def _le(edge: float, *, go: bool) -> str:
    """An edge as the client libraries of Python (5.0) or Go (5) write it."""
    text = repr(float(edge))
    return text.removesuffix(".0") if go else text
