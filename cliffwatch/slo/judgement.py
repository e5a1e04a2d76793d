"""What judging a run by an SLO file gives: frozen results, ready for JSON. Null is unknown; every share has its n."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from cliffwatch.cost.price import Price
from cliffwatch.slo.sli import Clock, Sli


class Status(StrEnum):
    """`too_few_data` is neither met nor missed."""

    MET = "met"
    MISSED = "missed"
    TOO_FEW_DATA = "too_few_data"


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class Quantile(_Result):
    """A percentile in seconds over `n` requests: null when not shown for want of samples, `few` when marked."""

    value: float | None
    n: int
    few: bool


class Bucket(_Result):
    """Input lengths an objective is for, in tokens a prompt, both ends included; `max` null is no upper end."""

    min: int
    max: int | None


class ObjectiveResult(_Result):
    """One objective on one run.

    Attributes:
        figure: the column of `requests` that is judged; null for availability.
        clock: where the judged times start; null for availability and per-token figures.
        n: requests that count, good + bad.
        censored: of `bad`, those that waited at least the threshold in vain (time-outs, stalls).
        unknown: successful requests in the bucket whose figure is not known; they are not in `n`.
        attainment: good / n; `low` and `high` are its Wilson 95 % interval.
        confident: the interval lies wholly on one side of the target.
        needed_n: requests from which the attainment alone decides.
        observed: p50, p95 and p99 of the successful requests in the bucket.
    """

    sli: Sli
    label: str
    threshold_s: float | None
    target: float
    figure: str | None
    clock: Clock | None
    input_tokens: Bucket | None
    n: int
    good: int
    bad: int
    censored: int
    unknown: int
    attainment: float | None
    low: float | None
    high: float | None
    status: Status
    confident: bool
    needed_n: int
    observed: dict[str, Quantile]


class Goodput(_Result):
    """Requests that meet every objective that applies to them.

    Attributes:
        n: requests sent, whether ok, failed, cancelled or lost; but for those whose users left as planned.
        per_s: good / `held_s`; null where no request has ended.
        held_s: seconds from the first judged request's intended time to the last one's end.
    """

    n: int
    good: int
    ratio: float | None
    low: float | None
    high: float | None
    per_s: float | None
    held_s: float | None


class Judgement(_Result):
    """A run judged by an SLO file.

    Attributes:
        status: missed when any objective is, or when nothing succeeded at all; met when every one is.
        reason: why, in one sentence.
        phase: the part of the run that was judged.
        partial: why the run is not whole, null when it is.
    """

    slo: str
    status: Status
    reason: str
    phase: str
    partial: str | None
    objectives: tuple[ObjectiveResult, ...]
    goodput: Goodput
    price: Price | None
