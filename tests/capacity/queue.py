"""Probes of an M/M/1 queue, whose capacity for an objective on the time in system is known without any simulation."""

from __future__ import annotations

import math

import numpy as np

from cliffwatch.capacity.evidence import Series, cooldown_s, weigh
from cliffwatch.capacity.search import Answer, Limits, Probe, next_step
from cliffwatch.capacity.sequential import LOOKS, Outcome, decide


def threshold_s(rate: float, service_rate: float, target: float) -> float:
    """What an M/M/1 queue just meets at `rate`: its time in system is exponential with mean 1 / (mu - rate)."""
    return -math.log(1 - target) / (service_rate - rate)


def customers(rng: np.random.Generator, rate: float, service_rate: float, duration_s: float) -> tuple[np.ndarray, ...]:
    """Arrival times and times in system, from an empty queue on, by Lindley's recursion."""
    due = np.cumsum(rng.exponential(1 / rate, int(rate * duration_s * 1.2 + 100)))
    due = due[due < duration_s]
    service = rng.exponential(1 / service_rate, len(due))
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - np.diff(due))])
    return due, walk - np.minimum.accumulate(walk) + service


def series(due: np.ndarray, took: np.ndarray, threshold: float, now_s: float = math.inf) -> Series:
    """What is seen of them at `now_s`."""
    due, took = due[due <= now_s], took[due <= now_s]
    ended = due + took <= now_s
    marks = np.where(ended, np.where(took <= threshold, 1, -1), 0)
    return Series(
        due_s=due,
        ended_s=np.where(ended, due + took, np.inf),
        latency_s=np.where(ended, took, np.nan),
        marks=marks[None],
        kept=marks == 1,
        pending=~ended,
    )


def probe(
    rng: np.random.Generator, rate: float, service_rate: float, duration_s: float, threshold: float, target: float
) -> Probe:
    """One probe as the shell sends it: looked at as it goes on, ended by the first look that decides."""
    due, took = customers(rng, rate, service_rate, duration_s)
    for share in LOOKS:
        now_s = math.inf if share == 1 else share * duration_s
        seen = series(due, took, threshold, now_s)
        evidence = weigh(seen, until_s=min(now_s, float(seen.due_s[-1])) - cooldown_s(seen))
        outcome = decide(evidence, (target,))
        if outcome is not Outcome.UNDECIDED:
            break
    return Probe(rate=rate, outcome=outcome, evidence=evidence)


def search(
    seed: int, *, rate: float, service_rate: float = 100.0, target: float = 0.95, duration_s: float, first: float
) -> tuple[Answer, list[Probe]]:
    """A whole search for a capacity that is `rate`."""
    rng, probes = np.random.default_rng(seed), []
    limits = Limits(lowest=first / 100, highest=None, first=first, targets=(target,))
    threshold = threshold_s(rate, service_rate, target)
    while (step := next_step(probes, limits)).rate is not None:
        probes.append(probe(rng, step.rate, service_rate, duration_s, threshold, target))
    return step.answer, probes
