"""What an engine's own histograms counted while a run went on, from the samples that Prometheus keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cliffwatch.engines.catalog import Engine, Metric
from cliffwatch.errors import CliffwatchError
from cliffwatch.slo.beside.counters import Growth, growth
from cliffwatch.slo.live.asks import Ask, Asker, Series, raw_samples, read_answer
from cliffwatch.slo.prometheus.promql import any_of, selector

FIGURES = ("ttft", "e2e", "itl", "queue", "prefill", "decode")
WITH_BUCKETS = frozenset({"ttft", "e2e"})
MARGIN_S = 150.0  # a sample of before and of after the run must lie within it: more than any usual scrape interval
MAX_RUN_S = 86_400.0  # samples are fetched whole
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class Mean:
    """Seconds in all over `n` events."""

    sum_s: float
    n: int

    @property
    def mean_s(self) -> float | None:
        """None without events."""
        return self.sum_s / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Measured:
    """One histogram: its mean, and how many were at most each edge (seconds, ascending), +Inf left out."""

    mean: Mean
    up_to: Mapping[float, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineSide:
    """The engine's figures between the samples at `from_s` and `to_s` (Unix seconds; None without any sample).

    Attributes:
        figures: of `FIGURES`, those that are known.
        lacking: why each other one is not.
    """

    figures: Mapping[str, Measured]
    lacking: Mapping[str, str]
    from_s: float | None
    to_s: float | None
    notes: tuple[str, ...] = ()


def read_engine(engine: Engine, match: Mapping[str, str], start_s: float, end_s: float, ask: Asker) -> EngineSide:
    """Ask for every figure that the engine has a histogram of; `match` are labels of its series.

    Raises:
        UnreachableError: Prometheus answers nothing at all.
    """
    metrics = {key: found for key in FIGURES if (found := _metrics(engine, key))}
    lacking = {key: f"{engine.title} has no metric of it" for key in FIGURES if key not in metrics}
    asks = [_ask(key, found, match, start_s, end_s) for key, found in metrics.items()]
    figures: dict[str, Measured] = {}
    grown: list[Growth] = []
    notes: list[str] = []
    failures: list[CliffwatchError] = []
    for (key, found), reply in zip(metrics.items(), ask(asks), strict=True):
        try:
            answer = read_answer(reply)
        except CliffwatchError as error:
            failures.append(error)
            lacking[key] = f"Prometheus {error.message}"
            continue
        notes += [f"Prometheus warns: {text}" for text in answer.warnings]
        measured, used = _measure(found, answer.series, start_s, end_s)
        grown += used
        if measured is None:
            lacking[key] = "no series of it has two samples in the run's time"
        else:
            figures[key] = measured
    if failures and len(failures) == len(asks):
        raise failures[0]
    from_s, to_s = min((one.from_s for one in grown), default=None), max((one.to_s for one in grown), default=None)
    return EngineSide(figures, lacking, from_s, to_s, (*dict.fromkeys(notes), *_told(grown, start_s, end_s)))


def _metrics(engine: Engine, key: str) -> tuple[Metric, ...]:
    source = next((source for sli, source in engine.slis.items() if sli == key), None)
    spans = next((names for span, names in engine.spans.items() if span == key), ())
    named = (engine.metric(name) for name in (source.metrics if source is not None else spans))
    return tuple(one for one in named if one.type in {"histogram", "summary"} and one.unit in _SECONDS)


def _ask(key: str, metrics: Iterable[Metric], match: Mapping[str, str], start_s: float, end_s: float) -> Ask:
    parts = ("_sum", "_count", *(["_bucket"] if key in WITH_BUCKETS else []))
    names = any_of(f"{one.name}{part}" for one in metrics for part in parts)
    selected = selector("", match, {"__name__": names})
    return raw_samples(selected, start_s=start_s - MARGIN_S, end_s=end_s + MARGIN_S)


def _measure(
    metrics: Iterable[Metric], series: Iterable[Series], start_s: float, end_s: float
) -> tuple[Measured | None, list[Growth]]:
    """By the first of the metrics that has samples."""
    known: dict[str, list[tuple[Series, Growth]]] = {}
    for one in series:
        if (found := growth(one.points, start_s, end_s)) is not None:
            known.setdefault(one.labels.get("__name__", ""), []).append((one, found))
    for metric in metrics:
        sums, counts = known.get(f"{metric.name}_sum", []), known.get(f"{metric.name}_count", [])
        if sums and counts:
            scale = _SECONDS[metric.unit]
            mean = Mean(sum(found.value for _, found in sums) * scale, round(sum(found.value for _, found in counts)))
            return Measured(mean, _edges(known.get(f"{metric.name}_bucket", []), scale)), [one for _, one in counts]
    return None, []


def _edges(buckets: Iterable[tuple[Series, Growth]], scale: float) -> dict[float, int]:
    """Counts by edge; an edge that not every series has is left out, for its count would lack theirs."""
    found: dict[float, list[float]] = {}
    for series, grown in buckets:
        edge = float(series.labels.get("le", "nan")) * scale
        found.setdefault(edge, []).append(grown.value)
    whole = len(found.get(math.inf, []))
    return {
        edge: round(sum(values))
        for edge, values in sorted(found.items())
        if math.isfinite(edge) and len(values) == whole
    }


def _told(grown: list[Growth], start_s: float, end_s: float) -> list[str]:
    late, early = sum(one.from_s > start_s for one in grown), sum(one.to_s < end_s for one in grown)
    notes = []
    if late:
        notes.append(f"{late} of {len(grown)} series have no sample of before the run: their first counts are lacking")
    if early:
        notes.append(f"{early} of {len(grown)} series have no sample of after the run; after one more scrape they may")
    if any(one.resets for one in grown):
        notes.append("an engine restarted meanwhile: what it counted after its last sample before that is lacking")
    return notes
