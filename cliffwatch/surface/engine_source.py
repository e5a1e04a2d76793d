"""Grids from an engine's own histograms, as a Prometheus has them: time by model or replica.

What a bucket counted is known, where in it a request lay is not: of a percentile only the edges around it are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cliffwatch.engines.catalog import Engine, Metric
from cliffwatch.errors import InputError
from cliffwatch.slo.live.asks import Ask, Asker, Series, ranged, read_answer
from cliffwatch.slo.prometheus.promql import selector, summed
from cliffwatch.stats import sample_needs
from cliffwatch.surface.bins import EACH, MAX_BINS, Axis, lay, usual_step_s
from cliffwatch.surface.cells import PERCENTILES, SURE_SAMPLES, Cell
from cliffwatch.surface.dimensions import DIMENSIONS
from cliffwatch.surface.grid import Grid, Question

SLIS = {"ttft_s": "ttft", "e2e_s": "e2e", "itl_s": "itl", "tpot_s": "tpot"}
TOLD = (*PERCENTILES, "mean", "count", "attainment")
LEAST_STEP_S = 60  # a bin needs two scrapes
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
EXTRAPOLATED = "n is Prometheus's increase, which extends what two scrapes saw to the ends of a bin"


@dataclass(frozen=True, slots=True)
class Counted:
    """What one cell's buckets counted: how many took at most each edge (seconds, rising), in all, and seconds in all
    (None: not known)."""

    edges: tuple[float, ...]
    up_to: tuple[float, ...]
    n: float
    sum_s: float | None


class EngineSource:
    """Grids of the time [start, end), Unix seconds, over the series with the labels in `match`."""

    def __init__(self, ask: Asker, engine: Engine, match: Mapping[str, str], start_s: float, end_s: float) -> None:
        """Raises InputError for a time that ends before it begins."""
        if not end_s > start_s:
            raise InputError("must end after it begins", field="time", value=f"{start_s:g} to {end_s:g}")
        self._ask, self._engine, self._match = ask, engine, match
        self._start_s, self._end_s = start_s, end_s

    def grids(self, question: Question) -> tuple[Grid, ...]:
        """The one grid of the question.

        Raises:
            InputError: the engine's histograms cannot tell it: another metric, statistic or side.
            UnreachableError: Prometheus does not answer.
        """
        label, metrics = self._label(question), self._metrics(question)
        step_s = max(LEAST_STEP_S, usual_step_s(self._end_s - self._start_s))
        moments = _moments(self._start_s, self._end_s, step_s)
        for metric in metrics:
            asks = [self._range(text, moments, step_s) for text in _queries(metric, self._match, label, step_s)]
            buckets, alike, sums = (read_answer(reply) for reply in self._ask(asks))
            if buckets.series:
                cells = _counted(buckets.series, alike.series, sums.series, label, _SECONDS[metric.unit])
                warnings = tuple(f"Prometheus warns: {text}" for text in buckets.warnings)
                return (_grid(question, cells, moments, step_s, (f"{metric.name}: {EXTRAPOLATED}", *warnings)),)
        return (_grid(question, {}, moments, step_s, (f"no series of {', '.join(one.name for one in metrics)}",)),)

    def _label(self, question: Question) -> str:
        if question.rows != "time" or question.facet is not None:
            raise InputError("cannot be told by histograms", field="rows, facet", allowed="rows time, and no facet")
        if question.columns not in self._engine.labels:
            allowed = ", ".join(name for name in self._engine.labels if name in DIMENSIONS)
            raise InputError(f"is no label of {self._engine.title}", field="columns", value=question.columns,
                             allowed=allowed)  # fmt: skip
        if question.statistic not in TOLD:
            raise InputError("cannot be told by histograms", field="statistic", value=question.statistic,
                             allowed=", ".join(TOLD))  # fmt: skip
        return self._engine.labels[question.columns]

    def _metrics(self, question: Question) -> tuple[Metric, ...]:
        source = self._engine.slis.get(SLIS.get(question.metric, ""))  # type: ignore[call-overload]
        named = [self._engine.metric(name) for name in source.metrics] if source is not None else []
        found = tuple(one for one in named if one.type == "histogram" and one.unit in _SECONDS)
        if not found:
            known = ", ".join(name for name, sli in SLIS.items() if sli in self._engine.slis)
            message = f"{self._engine.title} has no histogram of it"
            raise InputError(message, field="metric", value=question.metric, allowed=known)
        return found

    def _range(self, promql: str, moments: Sequence[float], step_s: float) -> Ask:
        return ranged(promql, start_s=moments[0], end_s=moments[-1], step_s=step_s, keep_s=0.0)


def _moments(start_s: float, end_s: float, step_s: float) -> list[float]:
    """The end of each bin; the last bin ends at or after `end_s`."""
    count = math.ceil((end_s - start_s) / step_s)
    if count > MAX_BINS:
        raise InputError(f"makes more than {MAX_BINS} bins", field="time", value=f"{end_s - start_s:g} s")
    return [start_s + number * step_s for number in range(1, count + 1)]


def _queries(metric: Metric, match: Mapping[str, str], label: str, step_s: float) -> list[str]:
    """Buckets; how many series have each edge (one that some lack would count too little); seconds in all."""
    bucket, seconds = (
        f"increase({selector(f'{metric.name}_{part}', match)}[{step_s:g}s])" for part in ("bucket", "sum")
    )
    return [summed(("le", label), bucket), f"count by (le, {label}) ({bucket})", summed((label,), seconds)]


Place = tuple[float, str]  # the bin's end in Unix seconds, the column's value


def _counted(
    buckets: Iterable[Series], alike: Iterable[Series], sums: Iterable[Series], label: str, scale: float
) -> dict[Place, Counted]:
    series_of = {(place, edge): value for place, edge, value in _points(alike, label)}
    seconds = {place: value for place, _, value in _points(sums, label)}
    found: dict[Place, dict[float, float]] = {}
    for place, edge, value in _points(buckets, label):
        if series_of.get((place, edge)) == series_of.get((place, math.inf)):
            found.setdefault(place, {})[edge] = value
    counted = {}
    for place, by_edge in found.items():
        n = by_edge.pop(math.inf, None)
        if n is None:
            continue
        edges = tuple(sorted(by_edge))
        rising, highest = [], 0.0
        for edge in edges:  # each bucket is extended by itself: one may come out under a smaller one
            highest = min(max(highest, by_edge[edge]), n)
            rising.append(highest)
        sum_s = seconds.get(place)
        counted[place] = Counted(
            tuple(edge * scale for edge in edges), tuple(rising), n, None if sum_s is None else sum_s * scale
        )
    return counted


def _points(series: Iterable[Series], label: str) -> Iterable[tuple[Place, float, float]]:
    for one in series:
        edge = float(one.labels.get("le", "nan"))
        for moment_s, value in one.points:
            yield (moment_s, one.labels.get(label, "")), edge, value


def _grid(
    question: Question, cells: Mapping[Place, Counted], moments: Sequence[float], step_s: float, notes: tuple[str, ...]
) -> Grid:
    name, clock = question.rows, DIMENSIONS[question.rows]
    keys = tuple(number * step_s for number in range(len(moments)))
    why = f"steps of {step_s:g} s from the first moment on"
    rows = Axis(name, clock.unit, "linear", why, keys, keys, len(moments) * step_s)
    word = DIMENSIONS[question.columns]
    columns = lay(question.columns, word, EACH, (column for _, column in cells), "columns")
    by_row = {round(moment_s, 3): row for row, moment_s in enumerate(moments)}
    placed = {(by_row[round(moment_s, 3)], column): one for (moment_s, column), one in cells.items()}
    table = tuple(
        tuple(_cell(question, placed.get((row, str(column)))) for column in columns.keys) for row in range(len(moments))
    )
    return Grid(question, rows, columns, table, sum(cell.n for row in table for cell in row), 0, notes=notes)


def _cell(question: Question, counted: Counted | None) -> Cell:
    n = 0 if counted is None else round(counted.n)
    if question.statistic == "count":
        return Cell(float(n), n, few=False)
    if counted is None or not n:
        return Cell(None, 0, few=True)
    if question.statistic == "mean":
        return Cell(None if counted.sum_s is None else counted.sum_s / counted.n, n, n < SURE_SAMPLES)
    if question.threshold is not None:
        return _share(counted, question.threshold, n)
    p = PERCENTILES[question.statistic]
    needs = sample_needs(p)
    return Cell(None, n, n < needs.sure, *(_around(counted, p) if n >= needs.shown else (None, None)))


def _around(counted: Counted, p: float) -> tuple[float, float | None]:
    """The edges around a percentile; None above the last one."""
    low = 0.0
    for edge, up_to in zip(counted.edges, counted.up_to, strict=True):
        if up_to >= p * counted.n:
            return low, edge
        low = edge
    return low, None


def _share(counted: Counted, threshold_s: float, n: int) -> Cell:
    """The share of at most the threshold: exact at an edge, else between those of the edges around it."""
    few = n < SURE_SAMPLES
    low, high = 0.0, 1.0
    for edge, up_to in zip(counted.edges, counted.up_to, strict=True):
        share = up_to / counted.n
        if math.isclose(edge, threshold_s, rel_tol=1e-9):
            return Cell(share, n, few)
        if edge < threshold_s:
            low = share
        elif edge > threshold_s:
            high = share
            break
    return Cell(None, n, few, low, high)
