"""The pace of a load: how long, how fast, how even its arrivals are, read off the schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cliffwatch.workload.arrival_parts import SteadyArrivals
from cliffwatch.workload.plan import Column, PlanBlock
from cliffwatch.workload.spec import Workload

TIME_BINS = 60
MIN_BINS = 20
ARRIVALS_PER_BIN = 5


@dataclass(frozen=True)
class Gaps:
    """Times between arrivals: `cv` is their deviation over their mean; `dispersion` the variance over the mean of the
    arrivals in `bins` windows of `bin_s`. Both are 1 for Poisson arrivals and 0 for constant ones, and larger where the
    rate changes; null if too few."""

    n: int
    mean_s: float | None
    cv: float | None
    dispersion: float | None
    bins: int
    bin_s: float


@dataclass(frozen=True)
class Pace:
    """`duration_s`, rates and gaps as `Preview` has them; `over_time` are arrivals in equal parts of the duration."""

    duration_s: float | None
    rate_asked: float | None
    rate_achieved: float | None
    gaps: Gaps | None
    over_time: tuple[int, ...]


def pace_of(workload: Workload, plan: PlanBlock, *, complete: bool) -> Pace:
    """The pace of the requests of `plan`, or of the sessions that begin with them; `complete`: these are all."""
    starts = plan.intended_ns if workload.sessions is None else plan.intended_ns[plan.extra["turn"] == 0]
    duration = _duration_s(workload, plan, complete)
    asked = _mean_rate(workload, duration)
    gaps = _gaps(starts, asked or len(starts) / duration, duration) if workload.open_loop and duration else None
    return Pace(
        duration_s=duration,
        rate_asked=asked,
        rate_achieved=_planned_rate(workload, len(starts), duration, gaps),
        gaps=gaps,
        over_time=_over_time(starts, duration) if workload.open_loop and duration else (),
    )


def _duration_s(workload: Workload, plan: PlanBlock, complete: bool) -> float | None:
    if not workload.open_loop:
        return workload.duration
    if workload.duration is not None and complete and len(plan) != workload.requests:
        return workload.duration
    return float(plan.intended_ns.max()) / 1e9


def _mean_rate(workload: Workload, duration_s: float | None) -> float | None:
    expected = workload.expected_arrivals(duration_s) if duration_s else None
    return expected / duration_s if expected and duration_s else None


def _planned_rate(workload: Workload, n: int, duration_s: float | None, gaps: Gaps | None) -> float | None:
    if not isinstance(workload.arrivals, SteadyArrivals):
        return n / duration_s if workload.open_loop and duration_s else None
    return 1 / gaps.mean_s if gaps and gaps.mean_s else None


def _gaps(intended_ns: Column, rate: float, duration_s: float) -> Gaps:
    gaps = np.diff(intended_ns)
    bin_s = max(0.1, ARRIVALS_PER_BIN / rate)
    bins = int(duration_s / bin_s)
    counts = np.bincount((intended_ns // round(bin_s * 1e9)).astype(np.int64), minlength=bins)[:bins]
    mean = float(gaps.mean()) if gaps.size else 0.0
    return Gaps(
        n=int(gaps.size),
        mean_s=mean / 1e9 or None,
        cv=float(gaps.std(ddof=1)) / mean if gaps.size > 1 and mean else None,
        dispersion=float(counts.var(ddof=1) / counts.mean()) if bins >= MIN_BINS and counts.any() else None,
        bins=bins,
        bin_s=bin_s,
    )


def _over_time(intended_ns: Column, duration_s: float) -> tuple[int, ...]:
    part = np.minimum((intended_ns / (duration_s * 1e9) * TIME_BINS).astype(np.int64), TIME_BINS - 1)
    return tuple(np.bincount(part, minlength=TIME_BINS).tolist())
