"""Pairs of runs as arrays: what `measure` would read of them, many times faster than through folders."""

from __future__ import annotations

from typing import Any

import numpy as np

from cliffwatch.compare.compare import Pair
from cliffwatch.compare.measure import Measured
from cliffwatch.compare.metrics import METRICS, Kind, Metric
from cliffwatch.stats.clusters import WINDOWS, inflation
from cliffwatch.stats.estimates import QuantileEstimate, RateEstimate, ShareEstimate
from tests.stats.queueing import queue

Array = np.ndarray[Any, Any]
Run = dict[str, Array]  # due, ttft, itl, e2e, failed


def independent(rng: np.random.Generator, n: int, *, slower: float = 1.0, failures: float = 0.02) -> Run:
    """Poisson arrivals at 10/s; latencies of two kinds of prompts, one request as good as the next."""
    long = rng.random(n) < 0.2
    ttft = slower * np.where(long, 0.4, 0.1) * rng.lognormal(0, 0.25, n)
    itl = slower * rng.lognormal(np.log(0.02), 0.15, n)
    tokens = rng.integers(50, 150, n)
    return {
        "due": np.cumsum(rng.exponential(0.1, n)),
        "ttft": ttft,
        "itl": itl,
        "e2e": ttft + itl * tokens,
        "failed": rng.random(n) < failures,
    }


def pair_of(base: Run, new: Run) -> list[Pair]:
    """Every metric but those of an SLO and of tokens, as the arrays have it."""
    shown = [metric for metric in METRICS if not metric.of_slo and metric.name != "output_tokens"]
    return [Pair(metric, _measured(metric, base), _measured(metric, new)) for metric in shown]


def queued(rng: np.random.Generator, n: int) -> Run:
    """Latencies of a queue at 70 % load, which keep their memory over hundreds of requests."""
    run = independent(rng, n)
    arrivals, waits = queue(rng, n, 0.7)
    ttft = 0.1 * waits
    return run | {"due": arrivals - arrivals[0], "ttft": ttft, "e2e": ttft + 2 * run["itl"]}


def _measured(metric: Metric, run: Run) -> Measured:
    ok = ~run["failed"]
    place = np.minimum((run["due"] / run["due"][-1] * WINDOWS).astype(int), WINDOWS - 1)
    if metric.kind is Kind.RATE:
        ended = np.minimum((run["due"] + run["e2e"])[ok] / run["due"][-1] * WINDOWS, WINDOWS).astype(int)
        per_s = np.bincount(ended, minlength=WINDOWS + 1)[:WINDOWS] * WINDOWS / run["due"][-1]
        return Measured(RateEstimate(float(per_s.mean()), tuple(per_s.tolist())), int(ok.sum()))
    if metric.kind is Kind.SHARE:
        factor = inflation(np.bincount(place, run["failed"], WINDOWS), np.bincount(place, minlength=WINDOWS))
        return Measured(ShareEstimate(int(run["failed"].sum()), len(ok), factor), len(ok))
    values = run[metric.name.partition("_")[0]][ok]
    ascending, place = np.sort(values), place[ok]
    under = values <= QuantileEstimate(ascending, metric.p).value
    factor = inflation(np.bincount(place, under, WINDOWS), np.bincount(place, minlength=WINDOWS))
    return Measured(QuantileEstimate(ascending, metric.p, factor), len(values))
