"""What one probe showed: counts of each objective after the warm-up, how much they are worth, and the server's backlog.

A probe's rows are a series in order of intended time. Its start is cut by MSER-5; its end too, since a server that gets
no new requests answers the last ones faster than it could have gone on to. Requests of one queue are alike, so shares
are weighed by their variance between windows of time (`stats.clusters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from cliffwatch.stats.clusters import WINDOWS, inflation
from cliffwatch.stats.mser import SMALLEST_S, kendall_p, mser

# The end that is cut: as long as nearly every request takes, but never more than a quarter of the load.
COOLDOWN_QUANTILE, COOLDOWN_SHARE = 0.95, 0.25
# Backlog: a trend that chance shows in one steady series of 1,000, and at least one request of 50 left lying.
GROWTH_P, GROWTH_SHARE = 0.001, 0.02
MIN_GROWTH_N = 5 * WINDOWS
UNSURE = (2.76 / 2.50) ** 2  # the variance between 20 windows is itself uncertain: (t / z)^2 at the level of one look
MOST_ALIKE = 0.9
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Series:
    """Requests of a probe in order of their intended time; every array has one value a request.

    Attributes:
        due_s: intended time since the run's zero.
        ended_s: when its outcome was known; infinite for one that has none yet.
        latency_s: of successful requests, NaN elsewhere: what the warm-up is told by.
        marks: for each objective (rows) 1 good, -1 bad, 0 outside of it.
        kept: whether it met every objective.
        pending: its end is not known yet, or was ended by us: it may yet turn out good or bad.
    """

    due_s: Array
    ended_s: Array
    latency_s: Array
    marks: Array
    kept: Array
    pending: Array

    def __len__(self) -> int:
        return len(self.due_s)


class Count(BaseModel):
    """One objective, or goodput, over the judged part of a probe.

    Attributes:
        n: requests that count; `bad` of them missed.
        inflation: by how much correlation inflates the variance of their share (at least 1).
        caution: the same, as the latencies of all requests have it: for decisions while misses are still rare.
    """

    model_config = ConfigDict(frozen=True)

    n: int
    bad: int
    inflation: float
    caution: float

    @property
    def good(self) -> int:
        return self.n - self.bad


class Evidence(BaseModel):
    """What one probe showed at its rate.

    Attributes:
        counts: by objective, in the SLO file's order.
        goodput: requests that met all objectives, of those sent.
        start_s, end_s: the judged part of the load, in seconds since the run's zero.
        cut: requests left out as warm-up by MSER-5; `settled` False where it found no end of the warm-up.
        pending: requests of the judged part without an end of their own.
        arrivals_per_s, answers_per_s: requests due and requests ended, within the judged part.
        growing: the backlog grows without bound: more arrives than is answered, beyond chance.
    """

    model_config = ConfigDict(frozen=True)

    counts: tuple[Count, ...]
    goodput: Count
    start_s: float
    end_s: float
    cut: int
    settled: bool
    pending: int
    arrivals_per_s: float
    answers_per_s: float
    growing: bool

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def cooldown_s(series: Series) -> float:
    """How much of the end to leave out; 0 where nothing has ended."""
    took = (series.ended_s - series.due_s)[np.isfinite(series.ended_s)]
    if not len(took):
        return 0.0
    span = float(series.due_s[-1] - series.due_s[0])
    return min(float(np.quantile(took, COOLDOWN_QUANTILE)), COOLDOWN_SHARE * span)


def weigh(series: Series, *, until_s: float) -> Evidence | None:
    """Evidence of the requests due by `until_s`, the warm-up left out; None where none is left."""
    count = int(np.searchsorted(series.due_s, until_s, side="right"))
    start, settled = _warmup(series, count)
    if count - start < 2:
        return None
    part = slice(start, count)
    due = series.due_s[part]
    start_s, end_s = float(due[0]), float(max(until_s, due[-1]))
    windows = np.minimum(((due - start_s) / (end_s - start_s) * WINDOWS).astype(np.int64), WINDOWS - 1)
    caution = _latency_inflation(series.latency_s[part], windows)
    seconds = end_s - start_s
    ended = series.ended_s[:count]
    sent = np.where(series.pending[part], 0, np.where(series.kept[part], 1, -1))
    return Evidence(
        counts=tuple(_count(marks[part], windows, caution) for marks in series.marks),
        goodput=_count(sent, windows, caution),
        start_s=start_s,
        end_s=end_s,
        cut=start,
        settled=settled,
        pending=int(np.count_nonzero(series.pending[part])),
        arrivals_per_s=(count - start) / seconds,
        answers_per_s=int(np.count_nonzero((ended > start_s) & (ended <= end_s))) / seconds,
        growing=_growing(series.due_s[:count], ended, start_s, end_s),
    )


def pool(one: Evidence, other: Evidence) -> Evidence:
    """Two probes of one rate as one: counts add up, how fast it went is the mean over their time."""
    a, b = one.seconds, other.seconds
    return Evidence(
        counts=tuple(_added(*pair) for pair in zip(one.counts, other.counts, strict=True)),
        goodput=_added(one.goodput, other.goodput),
        start_s=0.0,
        end_s=one.seconds + other.seconds,
        cut=one.cut + other.cut,
        settled=one.settled and other.settled,
        pending=one.pending + other.pending,
        arrivals_per_s=(one.arrivals_per_s * a + other.arrivals_per_s * b) / (a + b),
        answers_per_s=(one.answers_per_s * a + other.answers_per_s * b) / (a + b),
        growing=one.growing and other.growing,
    )


def _added(one: Count, other: Count) -> Count:
    n = one.n + other.n
    weight = one.n / n if n else 0.5
    return Count(
        n=n,
        bad=one.bad + other.bad,
        inflation=weight * one.inflation + (1 - weight) * other.inflation,
        caution=weight * one.caution + (1 - weight) * other.caution,
    )


def _warmup(series: Series, count: int) -> tuple[int, bool]:
    """How many requests MSER-5 leaves out, and whether it found an end. Latencies in logarithms, as in the report."""
    latency = series.latency_s[:count]
    places = np.flatnonzero(~np.isnan(latency))
    cut = mser(np.log(np.maximum(latency[places], SMALLEST_S)))
    if cut is None or not cut.values:
        return 0, cut is not None
    return int(places[cut.values]), cut.settled


def _count(marks: Array, windows: Array, caution: float) -> Count:
    counted, bad = marks != 0, marks < 0
    totals = np.bincount(windows[counted], minlength=WINDOWS)
    misses = np.bincount(windows[bad], minlength=WINDOWS)
    found = inflation(misses, totals)
    return Count(n=int(totals.sum()), bad=int(misses.sum()), inflation=found, caution=max(found, caution))


def _latency_inflation(latency: Array, windows: Array) -> float:
    """Variance of window means of log latency against that of independent values; 1 with little to tell by.

    Where neighbouring windows are still alike, they are too short to show all of it: the variance is that of a
    first-order autoregression then, (1 + r) / (1 - r) times as much.
    """
    known = ~np.isnan(latency)
    values = np.log(np.maximum(latency[known], SMALLEST_S))
    totals = np.bincount(windows[known], minlength=WINDOWS)
    if np.count_nonzero(totals) < WINDOWS or (spread := float(values.var())) <= 0:
        return 1.0
    sums = np.bincount(windows[known], weights=values - values.mean(), minlength=WINDOWS)
    means = sums / totals
    alike = float(means[1:] @ means[:-1] / (means @ means)) + 1 / WINDOWS  # biased by about -1 / n
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return max(1.0, float(sums @ sums) / (len(values) * spread) * UNSURE * (1 + alike) / (1 - alike))


def _growing(due: Array, ended: Array, start_s: float, end_s: float) -> bool:
    """Whether what lies unanswered grows over the judged part, in windows of equal time."""
    arrived = int(np.count_nonzero(due >= start_s))
    if arrived < MIN_GROWTH_N:
        return False
    at = np.linspace(start_s, end_s, WINDOWS + 1)[1:]
    backlog = np.searchsorted(due, at, side="right") - np.searchsorted(np.sort(ended), at, side="right")
    slope = float(np.polyfit(at, backlog, 1)[0])
    return slope * (end_s - start_s) > GROWTH_SHARE * arrived and kendall_p(backlog.astype(np.float64)) < GROWTH_P
