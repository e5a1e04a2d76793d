"""Latencies that are correlated as a server's are: customers of an M/M/1 queue, whose true percentiles are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Series = np.ndarray[Any, Any]


def queue(rng: np.random.Generator, n: int, load: float, *, settled: bool = True) -> tuple[Series, Series]:
    """Arrival times and times in system of n customers: arrivals at rate 1, mean service time `load`.

    The first customer finds the queue as it is in the long run, or empty (`settled=False`). By Lindley's recursion.
    """
    between, service = rng.exponential(1, n), rng.exponential(load, n)
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - between[1:])])
    start = rng.exponential(load / (1 - load)) if settled and rng.random() < load else 0.0
    waits = np.maximum(walk - np.minimum.accumulate(walk), walk + start)
    return np.cumsum(between), waits + service


def queue_quantile(load: float, p: float) -> float:
    """Time in system is exponential with mean load / (1 - load)."""
    return -load / (1 - load) * math.log(1 - p)
