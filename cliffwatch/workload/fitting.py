"""A workload file fitted to a trace: its lengths, arrivals and prefix sharing, none of its requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cliffwatch.config import parse_config
from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import CurveArrivals, TraceArrivals
from cliffwatch.workload.curves import CURVES
from cliffwatch.workload.observed import Floats, Ints, Observed, cv, dispersion, of_trace, of_workload
from cliffwatch.workload.parts import MAX_DURATION_S
from cliffwatch.workload.spec import Workload
from cliffwatch.workload.traces.rows import Repair, Repairs

LENGTHS = 200  # values of a fitted distribution: a KS distance of half a percent at most
_TAIL = 0.99  # from here on the bins get finer, so that the longest lengths stay
EVEN_CV = 0.02
POISSON_CV = 0.05  # nearer to 1 than this is taken for 1
TICKS = 0.1  # share of gaps of 0 from which times are taken for ticks of a coarse clock
UNSTEADY_Z = 4.0
ARRIVALS_PER_STEP = (400, 100, 25)  # of ever finer curves; the rate of a step of 400 is known to 5 %
MAX_STEPS = 2000
NEAR = 0.05  # a distance of gaps below which no finer curve is tried
PAUSE = 14
MIN_RATE, MAX_RATE = 0.001, 1e6  # of steady arrivals
_ANY_LENGTH = {"kind": "fixed", "value": 1}
ARRIVALS_PER_WINDOW = 50  # windows in which dispersion is compared
MAX_WINDOWS = 1000


@dataclass(frozen=True)
class Compared:
    """One figure in the trace, and in what the fitted workload sends."""

    trace: float
    fitted: float


@dataclass(frozen=True)
class Fidelity:
    """How near the fitted workload's own schedule is to the trace, over `n` requests of each.

    Attributes:
        score: 1 less the largest of the three distances.
        input_tokens, output_tokens, gaps: Kolmogorov-Smirnov distances, the largest difference between the two
            distribution functions: 0 is alike.
        noise: the distance that two samples of one distribution exceed once in twenty.
        rate: requests a second.
        cv: burstiness, as the deviation of the gaps over their mean.
        dispersion: burstiness over longer times: variance over mean of the arrivals in `windows` equal windows.
        shared_input: share of the input tokens that an earlier prompt began with too.
        length_correlation: of the ranks of input and output lengths; a fitted workload draws them independently.
    """

    n: int
    score: float
    input_tokens: float
    output_tokens: float
    gaps: float
    noise: float
    rate: Compared
    cv: Compared
    dispersion: Compared
    windows: int
    shared_input: Compared
    length_correlation: Compared


@dataclass(frozen=True)
class Fit:
    """A fitted workload, as model and as the text of its file; `complete`: whether all of the trace was used."""

    workload: Workload
    text: str
    fidelity: Fidelity
    complete: bool
    repairs: tuple[Repair, ...]
    notes: tuple[str, ...]


def fit(spec: TraceArrivals) -> Fit:
    """Fit a workload to a trace. Raises InputError where it cannot be read, is too long, or has under 10 requests."""
    repairs = Repairs()
    seen = of_trace(spec, repairs)
    if seen.span_s > MAX_DURATION_S:  # a little more than from the first to the last: the last one has a gap of its own
        raise InputError("goes on for over 30 days", file=spec.file, field="duration", value=f"{seen.span_s:.3f} s")
    notes: list[str] = []
    name = Path(spec.file).name.split(".")[0]
    fields: dict[str, Any] = {
        "name": "".join(char for char in name if char.isprintable())[:90] or "trace",
        "description": f"Fitted to {seen.n} requests of a trace: lengths, arrivals and prefix sharing, no content.",
        "duration": max(round(seen.span_s, 3), 0.001),
        "arrivals": _arrivals(seen, notes),
        "input_tokens": _lengths(seen.input_tokens),
        "output_tokens": _lengths(seen.output_tokens),
        "batch": {"sizes": [1]},
    }
    if seen.groups:
        fields["cache"] = _cache(seen)
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    workload = parse_config(text, Workload, source="fitted workload")
    if not seen.complete:
        notes.append(f"only the first {seen.n:,} requests were used")
    return Fit(
        workload, text, compare(seen, of_workload(workload, seen.n)), seen.complete, tuple(repairs), tuple(notes)
    )


def compare(trace: Observed, fitted: Observed) -> Fidelity:
    """The figures of both side by side."""
    distances = [
        distance(trace.input_tokens, fitted.input_tokens),
        distance(trace.output_tokens, fitted.output_tokens),
        distance(np.diff(trace.times_ns), np.diff(fitted.times_ns)),
    ]
    counts, planned = (seen.window_counts(ARRIVALS_PER_WINDOW, MAX_WINDOWS) for seen in (trace, fitted))
    return Fidelity(
        n=min(trace.n, fitted.n),
        score=round(1 - max(distances), 4),
        input_tokens=distances[0],
        output_tokens=distances[1],
        gaps=distances[2],
        noise=_noise(trace.n, fitted.n),
        rate=Compared(trace.n / trace.span_s, fitted.n / fitted.span_s),
        cv=Compared(cv(trace.gaps_s), cv(fitted.gaps_s)),
        dispersion=Compared(dispersion(counts), dispersion(planned)),
        windows=len(counts),
        shared_input=Compared(trace.shared, fitted.shared),
        length_correlation=Compared(_correlation(trace), _correlation(fitted)),
    )


def distance(one: Ints, two: Ints) -> float:
    """Largest difference between the empirical distribution functions of two samples (two-sample KS statistic)."""
    one, two = np.sort(one), np.sort(two)
    at = np.concatenate([one, two])
    shares = [np.searchsorted(sample, at, side="right") / len(sample) for sample in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())


def _noise(one: int, two: int) -> float:
    """The distance that two samples of one distribution exceed once in twenty (Smirnov's asymptotic 1.36)."""
    return 1.36 * float(np.sqrt(1 / one + 1 / two))


def _correlation(seen: Observed) -> float:
    """Spearman's; 0 where one of the lengths is always the same."""
    one, two = (np.unique(column, return_inverse=True)[1] for column in (seen.input_tokens, seen.output_tokens))
    return float(np.cov(one, two)[0, 1] / (one.std(ddof=1) * two.std(ddof=1))) if one.any() and two.any() else 0.0


def _lengths(tokens: Ints) -> dict[str, Any]:
    """The lengths themselves where they are few, else means of bins of equal shares, finer towards the longest."""
    values, counts = np.unique(tokens, return_counts=True)
    if len(values) == 1:
        return {"kind": "fixed", "value": int(values[0])}
    if len(values) > LENGTHS:
        tail = 1 - (1 - _TAIL) * 0.5 ** np.arange(12)
        ends = np.concatenate([np.linspace(0, _TAIL, LENGTHS - 12)[1:], tail[1:], [1.0]])
        share = (np.cumsum(counts) - counts / 2) / counts.sum()
        place = np.searchsorted(ends, share)
        weights = np.bincount(place, weights=counts)
        means = np.bincount(place, weights=counts * values) / np.where(weights, weights, 1)
        values, counts = np.rint(means[weights > 0]).astype(np.int64), weights[weights > 0].astype(np.int64)
    return {"kind": "empirical", "values": values.tolist(), "weights": counts.tolist()}


def _arrivals(seen: Observed, notes: list[str]) -> dict[str, Any]:
    """The plainest arrivals whose gaps are near the trace's, or the nearest: a steady rate, then ever finer curves."""
    ticks = float((seen.gaps_s == 0).mean()) > TICKS
    if ticks:
        notes.append(
            "many requests have equal times (a coarse clock): burstiness is told from counts, and gaps are not met"
        )
    found: list[tuple[float, dict[str, Any]]] = []
    for arrivals in _candidates(seen, ticks):
        if ticks:
            return arrivals
        fields = {"arrivals": arrivals, "requests": seen.n + 1, "duration": seen.span_s, "input_tokens": _ANY_LENGTH}
        planned = of_workload(Workload.model_validate(fields), seen.n)
        found.append((distance(np.diff(seen.times_ns), np.diff(planned.times_ns)), arrivals))
        if found[-1][0] <= max(NEAR, _noise(seen.n, planned.n)):
            return arrivals
    return min(found, key=lambda pair: pair[0])[1]


def _candidates(seen: Observed, ticks: bool) -> Iterator[dict[str, Any]]:
    """A steady rate, unless counts differ more than the scatter on the coarsest curve's own clock explains; curves."""
    for arrivals in ARRIVALS_PER_STEP:
        curve = _curve(seen, max(arrivals, seen.n // MAX_STEPS))
        due = CURVES["curve"](CurveArrivals.model_validate(curve)).expected(seen.times_ns / 1e9)
        scatter = 1.0 if ticks else cv(np.diff(due))
        if arrivals == ARRIVALS_PER_STEP[0]:
            counts = seen.window_counts(arrivals, MAX_STEPS)
            excess = dispersion(counts) / max(scatter, EVEN_CV) ** 2 - 1
            rate = seen.n / seen.span_s
            if excess * np.sqrt((len(counts) - 1) / 2) <= UNSTEADY_Z and MIN_RATE <= rate <= MAX_RATE:
                yield _steady(rate, scatter)
        yield curve | _scatter(scatter)


def _curve(seen: Observed, arrivals: int) -> dict[str, Any]:
    """Steps of so many arrivals each; in the finest curve pauses are steps of their own."""
    at = seen.times_ns / 1e9
    edges = at[::arrivals]
    if arrivals == ARRIVALS_PER_STEP[-1]:
        edges = np.concatenate([edges, *_pauses(at, arrivals)])
    edges = np.unique(edges.round(6))
    edges = np.append(edges[edges < seen.span_s], seen.span_s)
    counts = np.histogram(at, edges)[0]
    points = [
        {"at": start, "rate": float(f"{min(count / width, MAX_RATE):.5g}")}
        for start, count, width in zip(edges[:-1].tolist(), counts.tolist(), np.diff(edges).tolist(), strict=True)
    ]
    return {"kind": "curve", "interpolate": "steps", "points": points}


def _pauses(at: Floats, arrivals: int) -> tuple[Floats, Floats]:
    """Starts (just after an arrival) and ends of the longest gap of each step, where it is far longer than the rest.

    Of 25 exponential gaps the longest is over PAUSE times the mean of the others in 0.04 % of all steps.
    """
    gaps = np.diff(at)
    steps = np.arange(0, len(gaps), arrivals)
    sizes = np.diff(np.append(steps, len(gaps)))
    longest, total = np.maximum.reduceat(gaps, steps), np.add.reduceat(gaps, steps)
    others = (total - longest) / np.maximum(1, sizes - 1)
    least = np.where(longest > np.maximum(PAUSE * others, 1e-3), longest, np.inf)
    place = np.flatnonzero(gaps >= np.repeat(least, sizes))
    return at[place] + 1e-6, at[place + 1]


def _scatter(spread: float) -> dict[str, Any]:
    if spread < EVEN_CV:
        return {"spacing": "even"}
    return {} if abs(spread - 1) <= POISSON_CV else {"burstiness": _burstiness(spread)}


def _steady(rate: float, spread: float) -> dict[str, Any]:
    rate = float(f"{rate:.6g}")
    if spread < EVEN_CV:
        return {"kind": "constant", "rate": rate}
    if abs(spread - 1) <= POISSON_CV:
        return {"kind": "poisson", "rate": rate}
    return {"kind": "gamma", "rate": rate, "burstiness": _burstiness(spread)}


def _burstiness(spread: float) -> float:
    return float(f"{np.clip(1 / spread**2, 0.01, 1000):.4g}")


def _cache(seen: Observed) -> dict[str, Any]:
    """As many requests as share in the trace, and as much of them as keeps the share of tokens; where these are more
    than the requests have (long ones share more often), more requests instead.

    Of groups taken with chances p two requests share one with the sum of p^2: so do 1 / that sum equal groups.
    """
    share = max(float((seen.shared_tokens > 0).mean()), seen.shared)
    chances = np.array(list(seen.groups.values())) / seen.groups.total()
    return {
        "prefix_share": round(share, 4),
        "prefix_fraction": round(seen.shared / share, 4),
        "groups": max(1, round(float(1 / (chances**2).sum()))),
    }
