"""Where every request went: pure counting over outcomes."""

from __future__ import annotations

from collections.abc import Mapping

from cliffwatch.records.manifest import Accounting
from cliffwatch.records.schema import FAILURES, Outcome


def account(counts: Mapping[Outcome, int]) -> Accounting:
    """Sum up how many requests had each outcome; every outcome falls in exactly one of the five classes."""
    occurred = {outcome: counts[outcome] for outcome in Outcome if counts.get(outcome, 0)}
    return Accounting(
        issued=sum(occurred.values()),
        ok=occurred.get(Outcome.OK, 0),
        failed=sum(occurred.get(outcome, 0) for outcome in FAILURES),
        cancelled=occurred.get(Outcome.CANCELLED, 0),
        late=occurred.get(Outcome.LATE, 0),
        lost=occurred.get(Outcome.LOST, 0),
        by_outcome=occurred,
    )
