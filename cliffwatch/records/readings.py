"""The figures of a request that just ended, read off its row: what `records.figures` says in SQL, row by row.

A histogram that is filled live must agree with the judgement of the rows to the last request, so failed requests are
read by the same rules (docs/judgement.md): by what their tokens or their waiting prove, and not at all otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cliffwatch.records.figures import CENSORED
from cliffwatch.records.schema import FAILURES, Outcome, RequestRow

_NS_PER_S = 1e9


class Bound(NamedTuple):
    """The least that a failed request's figure would have been; `beyond` when it is known to be more than that."""

    value: float
    beyond: bool


class Reading(NamedTuple):
    """How a figure is read: of a request that ended `ok`, and of one that failed (None: it proves nothing then)."""

    ok: Callable[[RequestRow], float | None]
    failed: Callable[[RequestRow], Bound | None] | None = None


def _since_intended(event: str, *, complete: bool = False) -> Reading:
    def ok(row: RequestRow) -> float | None:
        at_ns: int | None = getattr(row, event)
        return None if at_ns is None else (at_ns - row.intended_ns) / _NS_PER_S

    return Reading(ok, lambda row: _bound(row, getattr(row, event), row.intended_ns, complete=complete))


def _since_sent(event: str, *, complete: bool = False) -> Reading:
    def ok(row: RequestRow) -> float | None:
        at_ns: int | None = getattr(row, event)
        return None if at_ns is None or row.sent_ns is None else (at_ns - row.sent_ns) / _NS_PER_S

    return Reading(ok, lambda row: _bound(row, getattr(row, event), row.sent_ns, complete=complete))


def _bound(row: RequestRow, at_ns: int | None, start_ns: int | None, *, complete: bool) -> Bound | None:
    """`complete`: the figure ends with the whole answer, so that a token only shows that it was not over yet."""
    reached = at_ns is not None and start_ns is not None
    if row.outcome in CENSORED and row.ended_ns is not None and (complete or not reached):
        return Bound((row.ended_ns - (row.intended_ns if start_ns is None else start_ns)) / _NS_PER_S, beyond=True)
    if at_ns is None or start_ns is None:
        return None
    return Bound((at_ns - start_ns) / _NS_PER_S, beyond=False)


def _tpot(row: RequestRow) -> float | None:
    first_ns, last_ns, tokens = row.first_token_ns, row.last_token_ns, row.output_tokens
    if first_ns is None or last_ns is None or tokens is None or tokens < 2 * row.batch or last_ns <= first_ns:
        return None
    return (last_ns - first_ns) / _NS_PER_S / (tokens / row.batch - 1)


def _ntpot(row: RequestRow) -> float | None:
    if row.last_token_ns is None or row.sent_ns is None or not row.output_tokens:
        return None
    return (row.last_token_ns - row.sent_ns) / _NS_PER_S / (row.output_tokens / row.batch)


READINGS: dict[str, Reading] = {
    "ttft_user_s": _since_intended("first_token_ns"),
    "ttft_s": _since_sent("first_token_ns"),
    "ttfa_user_s": _since_intended("first_answer_ns"),
    "ttfa_s": _since_sent("first_answer_ns"),
    "e2e_user_s": _since_intended("last_token_ns", complete=True),
    "e2e_s": _since_sent("last_token_ns", complete=True),
    "itl_s": Reading(lambda row: row.itl_s),
    "tpot_s": Reading(_tpot),
    "ntpot_s": Reading(_ntpot),
}


def dispatch_lag_s(row: RequestRow) -> float | None:
    """What the load generator itself was late: first sent minus intended, without connecting; None when never sent."""
    sent_ns = row.first_sent_ns
    return None if sent_ns is None else (sent_ns - row.intended_ns - (row.connect_ns or 0)) / _NS_PER_S


def proves_latency(outcome: Outcome) -> bool:
    """Whether a request that ended so may count in a latency's histogram."""
    return outcome is Outcome.OK or outcome in FAILURES
