"""Whether the figures of a run may be trusted: a table of checks with their thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from cliffwatch.records.figures import FIGURES
from cliffwatch.records.manifest import Reason, RunState, Verdict, VerdictState
from cliffwatch.records.schema import Outcome


@dataclass(frozen=True, slots=True)
class Check:
    """One measured value and what it means.

    Attributes:
        name: how reports call it.
        sql: an aggregate over the view `requests`; a null result means that there is nothing to check.
        degraded: the first value that makes a run DEGRADED (None: never).
        invalid: the first value that makes a run INVALID (None: never).
        message: what is said, with `{value}` and `{threshold}`.
        below: whether low values are the bad ones.
    """

    name: str
    sql: str
    degraded: float | None
    invalid: float | None
    message: str
    below: bool = False

    def __post_init__(self) -> None:
        if self.degraded is None and self.invalid is None:
            raise ValueError(f"check {self.name} can never fail")

    def judge(self, value: float | None) -> Reason | None:
        """The finding for a measured value, the worse threshold first; None when all is well or nothing is known."""
        if value is None:
            return None
        for state, threshold in ((VerdictState.INVALID, self.invalid), (VerdictState.DEGRADED, self.degraded)):
            if threshold is not None and (value < threshold if self.below else value >= threshold):
                message = self.message.format(value=value, threshold=threshold)
                return Reason(check=self.name, state=state, message=message, value=value, threshold=threshold)
        return None


_MEASURED = "FILTER (phase = 'measured')"
_OK = f"FILTER (phase = 'measured' AND outcome = '{Outcome.OK.value}')"

# 50 ms of lag is as large as a good TTFT, 1 s is larger than most objectives. A thousandth of arrivals not sent moves
# a P99 hardly, a twentieth makes the offered load another one. Prompts 2 % off shift a length bucket's edge, 20 % off
# are another workload. Under 200 successes a P95 has fewer than ten requests above it.
CHECKS: tuple[Check, ...] = (
    Check(
        "nothing measured",
        f"count(*) {_MEASURED}",
        None,
        1,
        "no request of the measured phase was recorded",
        below=True,
    ),
    Check(
        "send lag",
        f"quantile_cont({FIGURES['dispatch_lag_s'].sql}, 0.99) {_MEASURED}",
        0.05,
        1.0,
        "the load generator sent late: P99 of its lag is {value:.3g} s (threshold {threshold:g} s)",
    ),
    Check(
        "late and lost",
        f"count(*) FILTER (outcome IN ('{Outcome.LATE.value}', '{Outcome.LOST.value}')) / nullif(count(*), 0)",
        0.001,
        0.05,
        "{value:.2%} of the requests were late or lost (threshold {threshold:.1%})",
    ),
    Check(
        "prompt length",
        f"quantile_cont(abs({FIGURES['length_error'].sql}), 0.95) {_OK}",
        0.02,
        0.2,
        "prompts are not as long as asked: P95 of the error is {value:.1%} (threshold {threshold:.0%})",
    ),
    Check(
        "prompt length unknown",
        f"sum((server_input_tokens IS NULL)::INTEGER) {_OK} / nullif(count(*) {_OK}, 0)",
        0.5,
        None,
        "the server did not say how long {value:.0%} of the prompts were, so their length is not confirmed",
    ),
    Check(
        "few samples",
        f"count(*) {_OK}",
        200,
        None,
        "only {value:.0f} measured requests succeeded; a P95 needs {threshold:.0f}",
        below=True,
    ),
)


def judge_trust(
    connection: duckdb.DuckDBPyConnection, *, state: RunState, partial_reason: str | None = None
) -> Verdict:
    """Run every check over the view `requests` and take the worst finding; a partial run is DEGRADED at best."""
    selected = ", ".join(check.sql for check in CHECKS)
    values = connection.execute(f"SELECT {selected} FROM requests").fetchone() or ()  # noqa: S608  from a table above
    reasons = [reason for check, value in zip(CHECKS, values, strict=True) if (reason := check.judge(value))]
    if state is RunState.PARTIAL:
        message = f"the run is partial: {partial_reason or 'it was cut short'}"
        reasons.append(Reason(check="partial run", state=VerdictState.DEGRADED, message=message))
    worst = max((reason.state for reason in reasons), key=list(VerdictState).index, default=VerdictState.VALID)
    return Verdict(state=worst, reasons=tuple(reasons))
