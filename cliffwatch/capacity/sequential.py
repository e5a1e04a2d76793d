"""Holds, fails, or needs more data: the verdict on one probe, looked at several times while it goes on.

Looking again and again at growing data would find anything in the end. So the allowed error is shared out: each look
spends its part of `ERROR` (Bonferroni over looks and over both wrong answers), whatever the looks before it said. The
bounds are Wilson's, of as many independent requests as the correlated ones are worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from cliffwatch.capacity.evidence import Count, Evidence
from cliffwatch.slo.decide import MIN_BAD
from cliffwatch.stats.wilson import wilson

ERROR = 0.05  # chance that one probe ends with a wrong verdict, either way, at a rate on the edge
LOOKS = (0.125, 0.25, 0.5, 1.0)  # shares of the longest probe at which it is looked at


class Outcome(StrEnum):
    """What a probe says about its rate. `invalid` says nothing: the load generator could not keep up."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    INVALID = "invalid"


def decide(evidence: Evidence | None, targets: Sequence[float]) -> Outcome:
    """The verdict at one look. `targets` are the objectives' shares, in the order of the evidence's counts.

    A backlog that grows without bound fails whatever the shares say so far. A pending request counts as a miss where
    the question is whether the SLO holds, and as none where it is whether it fails.
    """
    if evidence is None:
        return Outcome.UNDECIDED
    if evidence.growing:
        return Outcome.FAILS
    error = ERROR / len(LOOKS)  # one-sided on each side: twice the half
    pairs = list(zip(evidence.counts, targets, strict=True))
    if any(_fails(count, target, evidence.pending, error / len(pairs)) for count, target in pairs):
        return Outcome.FAILS
    if _nothing_came(evidence):
        return Outcome.FAILS
    if all(_holds(count, target, evidence.pending, error) for count, target in pairs):
        return Outcome.HOLDS
    return Outcome.UNDECIDED


def _fails(count: Count, target: float, pending: int, error: float) -> bool:
    if count.bad < MIN_BAD:
        return False
    n = (count.n + pending) / count.caution
    return wilson(max(0.0, n - count.bad / count.caution), n, 1 - error)[1] < target


def _holds(count: Count, target: float, pending: int, error: float) -> bool:
    n = (count.n + pending) / count.caution
    return n > 0 and wilson(count.good / count.caution, n, 1 - error)[0] >= target


def _nothing_came(evidence: Evidence) -> bool:
    return (
        not any(count.n for count in evidence.counts) and evidence.goodput.bad >= MIN_BAD and not evidence.goodput.good
    )
