"""A workload at another rate, or with other users: what one probe sends."""

from __future__ import annotations

from cliffwatch.errors import InputError
from cliffwatch.workload.parts import Warmup
from cliffwatch.workload.spec import ConcurrencyArrivals, Workload, with_changes

RATE, USERS = "requests/s", "users"


def unit(workload: Workload) -> str:
    """What is varied: the rate of an open loop, the users of a closed one. Raises InputError where neither is one."""
    if workload.users is not None:
        return USERS
    if workload.rate is None:
        raise InputError(
            "has no rate that could be searched",
            field="arrivals.kind",
            value=workload.arrivals.kind,
            allowed="constant, poisson, gamma, or concurrency",
        )
    return RATE


def asked_for(workload: Workload) -> float:
    """The rate or the users that the workload file itself asks for."""
    return float(workload.users if workload.users is not None else workload.rate or 0)


def at_rate(workload: Workload, rate: float, *, duration_s: float, number: int) -> Workload:
    """What probe `number` (1 and up) sends: `duration_s` of the workload at this rate, with a seed of its own.

    The workload's own warm-up is dropped: MSER-5 cuts each probe's. Raises InputError for a rate that cannot be.
    """
    varied = {"users": round(rate)} if isinstance(workload.arrivals, ConcurrencyArrivals) else {"rate": rate}
    return with_changes(
        workload,
        source="the searched workload",
        arrivals={**workload.arrivals.model_dump(exclude_unset=True), **varied},
        duration=duration_s,
        requests=None,
        warmup=Warmup().model_dump(),
        seed=(workload.seed + number) % (1 << 63),
    )
