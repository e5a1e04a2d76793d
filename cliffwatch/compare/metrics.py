"""The figures that runs are compared by: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from cliffwatch.errors import InputError
from cliffwatch.slo.quantiles import PERCENTILES
from cliffwatch.stats.percentile import sample_needs

MIN_REQUESTS = 100  # for shares and rates: five in each of the 20 windows between which they vary


class Kind(StrEnum):
    """What a figure is, which says how it is measured and in what its threshold counts."""

    LATENCY = "latency"  # seconds; threshold as a share of the base
    SHARE = "share"  # of requests; threshold in points
    RATE = "rate"  # per second; threshold as a share of the base


class Metric(NamedTuple):
    """One figure.

    Attributes:
        name: what `--metric` takes, and so does the part before the last `_` for all figures that begin so.
        open_figure, closed_figure: the column of `requests`, where every run is open-loop, else.
        p: the percentile, for latencies.
        higher_is_worse: the direction that is a regression.
        needed_n: requests that each run must have for the figure to be compared.
        of_slo: exists only where there is an SLO.
    """

    name: str
    label: str
    kind: Kind
    higher_is_worse: bool
    needed_n: int = MIN_REQUESTS
    open_figure: str = ""
    closed_figure: str = ""
    p: float = 0.0
    of_slo: bool = False


_LATENCIES = {"ttft": ("ttft_user_s", "ttft_s"), "itl": ("itl_s", "itl_s"), "e2e": ("e2e_user_s", "e2e_s")}

METRICS: tuple[Metric, ...] = (
    *(
        Metric(f"{short}_{name}", f"{short.upper()} {name.upper()}", Kind.LATENCY, True, sample_needs(p).sure, *pair, p)
        for short, pair in _LATENCIES.items()
        for name, p in PERCENTILES.items()
    ),
    Metric("error_rate", "error rate", Kind.SHARE, True),
    Metric("goodput", "goodput", Kind.RATE, False, of_slo=True),
    Metric("goodput_share", "goodput share", Kind.SHARE, False, of_slo=True),
    Metric("throughput", "throughput", Kind.RATE, False),
    Metric("output_tokens", "output tokens", Kind.RATE, False),
)


def choose(names: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics of these names, in the table's order; all for none.

    Raises:
        InputError: a name is none of the table's and begins none.
    """
    for name in names:
        if not any(_named(metric, name) for metric in METRICS):
            allowed = ", ".join([*_LATENCIES, *(metric.name for metric in METRICS)])
            raise InputError("is no figure that runs are compared by", field="--metric", value=name, allowed=allowed)
    return tuple(metric for metric in METRICS if not names or any(_named(metric, name) for name in names))


def _named(metric: Metric, name: str) -> bool:
    return metric.name == name or (metric.kind is Kind.LATENCY and metric.name.rpartition("_")[0] == name)
