"""Which requests a query is about, as SQL conditions over the view `requests`; made of this project's names only."""

from __future__ import annotations

from collections.abc import Iterable

from cliffwatch.records.schema import FAILURES, NOT_SERVED, PLANNED, Outcome, Phase


def outcome_in(outcomes: Iterable[Outcome]) -> str:
    """The condition that keeps the requests that ended in one of these ways."""
    return f"outcome IN ({', '.join(repr(str(outcome)) for outcome in sorted(outcomes))})"


def in_phase(phase: Phase | None) -> str:
    """The condition that keeps one phase, or all for None."""
    return "TRUE" if phase is None else f"phase = '{phase}'"


OK = f"outcome = '{Outcome.OK}'"
FAILED = outcome_in(FAILURES)
NEVER_SERVED = outcome_in(NOT_SERVED)
LEFT = f"(outcome = '{Outcome.CANCELLED}' AND coalesce(error, '') = '{PLANNED}')"  # as the workload had planned
