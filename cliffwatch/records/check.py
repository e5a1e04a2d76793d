"""One check of a run's trust: where its value comes from, and what the value means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cliffwatch.records.manifest import CheckResult, Manifest, VerdictState
from cliffwatch.records.sending import Sending


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run beside its rows; `sending` is None in a closed loop.

    `answers` are those of the measured phase by replica, None where nobody asked or the run still goes on.
    """

    manifest: Manifest
    sending: Sending | None
    answers: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One value with its n; or None, and `unknown` says why. `where`: the worker or host that it is of."""

    value: float | None
    n: int | None = None
    where: str = ""
    unknown: str = "not known"


Source = Callable[[Facts], Found]


@dataclass(frozen=True, slots=True)
class Check:
    """One measured value and what it means.

    Attributes:
        name: how reports call it.
        means: what is measured, in words.
        unit: `s`, `share` or nothing for a number.
        degraded: the first value that makes a run DEGRADED (None: never).
        invalid: the first value that makes a run INVALID (None: never).
        message: what is said, with `{value}`, `{threshold}` and `{where}`.
        sql: an aggregate over the view `requests`; a null result means that there is nothing to check.
        n_sql: how many values are behind it, likewise.
        fact: the other source, in place of `sql`.
        below: whether low values are the bad ones.
    """

    name: str
    means: str
    unit: str
    degraded: float | None
    invalid: float | None
    message: str
    sql: str | None = None
    n_sql: str = "count(*)"
    fact: Source | None = None
    below: bool = False

    def __post_init__(self) -> None:
        if self.degraded is None and self.invalid is None:
            raise ValueError(f"check {self.name} can never fail")
        if (self.sql is None) == (self.fact is None):
            raise ValueError(f"check {self.name} needs one source, of rows or of facts")

    def judge(
        self, value: float | None, n: int | None = None, *, where: str = "", unknown: str = "nothing to check"
    ) -> CheckResult:
        """What a measured value means, the worse threshold first; without a value the state is None."""
        state: VerdictState | None = None if value is None else VerdictState.VALID
        crossed, message = None, unknown if value is None else None
        for worse, limit in ((VerdictState.INVALID, self.invalid), (VerdictState.DEGRADED, self.degraded)):
            if value is not None and limit is not None and (value < limit if self.below else value >= limit):
                state, crossed = worse, limit
                message = self.message.format(value=value, threshold=limit, where=where)
                break
        return CheckResult(
            check=self.name,
            state=state,
            message=message,
            value=value,
            unit=self.unit,
            threshold=crossed,
            degraded=self.degraded,
            invalid=self.invalid,
            below=self.below,
            n=n,
        )
