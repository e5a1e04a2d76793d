"""What clients will do of their own accord: requests tried again, users who leave."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from cliffwatch.workload.plan import PlanBlock
from cliffwatch.workload.preview.chance import Expected, expected
from cliffwatch.workload.spec import Workload

LOOKED_AT = 20_000  # each costs two digests


@dataclass(frozen=True)
class RetriesPlan:
    """What is tried again, and what that can come to; how much of it happens is up to the server.

    Attributes:
        on: outcomes that are tried again.
        attempts: at most, of one request, the first included.
        max_attempts: of all previewed requests together, were every one tried to the end.
        min_wait_s, max_wait_s: all waits of one request by its backoff, where no answer asks for another.
        budget_s: the one deadline over them.
    """

    on: tuple[str, ...]
    attempts: int
    max_attempts: int
    min_wait_s: float
    max_wait_s: float
    budget_s: float


@dataclass(frozen=True)
class CancellationsPlan:
    """Users who are to leave: how many of the previewed requests to `expect`, and those of the schedule itself.

    Attributes:
        n: requests looked at, the first `LOOKED_AT`.
        leaving: those of them whose user is to leave; one who has the answer before does not.
        since: what the time counts from, `first_token` or `send`.
        p50_s, p95_s: of that time, over `leaving`; null without any.
    """

    expect: Expected
    n: int
    leaving: int
    since: str
    p50_s: float | None
    p95_s: float | None


def retries_of(workload: Workload, plan: PlanBlock) -> RetriesPlan | None:
    """None where nothing is tried again."""
    retries = workload.retries
    if retries is None:
        return None
    longest_s = sum(islice(retries.backoff.longest_s(), retries.attempts - 1))
    return RetriesPlan(
        on=retries.on,
        attempts=retries.attempts,
        max_attempts=len(plan) * retries.attempts,
        min_wait_s=longest_s * (1 - retries.backoff.jitter),
        max_wait_s=longest_s,
        budget_s=workload.timeouts.total if retries.budget is None else retries.budget,
    )


def cancellations_of(workload: Workload, plan: PlanBlock) -> CancellationsPlan | None:
    """None where every user stays."""
    cancellations = workload.cancellations
    if cancellations is None:
        return None
    looked_at = plan.request_id[:LOOKED_AT].tolist()
    drawn = (cancellations.after_s(workload.seed, request_id) for request_id in looked_at)
    after_s = [seconds for seconds in drawn if seconds is not None]
    p50_s, p95_s = np.quantile(after_s, (0.5, 0.95)).tolist() if after_s else (None, None)
    return CancellationsPlan(
        expect=expected(len(plan), cancellations.share),
        n=len(looked_at),
        leaving=len(after_s),
        since=cancellations.since,
        p50_s=p50_s,
        p95_s=p95_s,
    )
