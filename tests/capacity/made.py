"""Evidence and probes with the numbers that a test needs."""

from __future__ import annotations

from cliffwatch.capacity.evidence import Count, Evidence
from cliffwatch.capacity.search import Probe
from cliffwatch.capacity.sequential import Outcome, decide


def evidence(
    *objectives: tuple[int, int],
    pending: int = 0,
    growing: bool = False,
    inflation: float = 1.0,
    answers_per_s: float = 1.0,
    seconds: float = 100.0,
) -> Evidence:
    """Of objectives given as (n, bad); goodput is the worst of them."""
    counts = tuple(Count(n=n, bad=bad, inflation=inflation, caution=inflation) for n, bad in objectives)
    return Evidence(
        counts=counts,
        goodput=max(counts, key=lambda count: count.bad),
        start_s=0.0,
        end_s=seconds,
        cut=0,
        settled=True,
        pending=pending,
        arrivals_per_s=counts[0].n / seconds,
        answers_per_s=answers_per_s,
        growing=growing,
    )


def probe(rate: float, *objectives: tuple[int, int], targets: tuple[float, ...] = (0.95,), **facts: object) -> Probe:
    """A probe with the verdict that its evidence has."""
    found = evidence(*objectives, **facts)  # type: ignore[arg-type]
    return Probe(rate=rate, outcome=decide(found, targets), evidence=found)


def invalid(rate: float) -> Probe:
    """A probe with which the load generator could not keep up."""
    return Probe(rate=rate, outcome=Outcome.INVALID)
