"""Whether requests left as the schedule had them: what was sent against what was intended, both of the same run.

Comparing a run's sent times with its own intended ones leaves chance out: a Poisson schedule of 1,000 arrivals is off
its rate by 3 % at times and rightly so. Only the test of dispersion looks at the sent times alone, and says how often
it errs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from cliffwatch.records.figures import FIRST_SENT
from cliffwatch.records.schema import Phase

NEEDED = 200  # requests: under that, a percent of a rate is two of them
NEEDED_S = 10.0  # under that, a percent of the time is as short as a good run's lag
LEAST_GAP_S = 0.005  # mean gaps under this are as short as the jitter of a send, which bins see better
_BIN_S = 0.1
_EACH_BIN = 5.0  # expected requests a bin, so that the chi-square holds
_NEEDED_BINS = 20
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sending:
    """Measured requests of an open-loop run. None where there are too few, or it has no meaning.

    Attributes:
        n: requests that were due.
        rate_error: requests sent a second against requests due a second, without sign.
        variation_error: difference of the gaps' coefficient of variation, sent against intended, without sign.
        dispersion: variance over mean of counts of sent requests in bins; 1 for Poisson arrivals.
        dispersion_score: how many standard deviations that is from 1, without sign.
        bins: how many bins.
    """

    n: int
    rate_error: float | None = None
    variation_error: float | None = None
    dispersion: float | None = None
    dispersion_score: float | None = None
    bins: int = 0


def measure_sending(connection: duckdb.DuckDBPyConnection, *, poisson: bool) -> Sending:
    """Read it off the view `requests`. `poisson`: arrivals are to be a Poisson process of one rate."""
    found = connection.execute(
        f"SELECT intended_ns, {FIRST_SENT} AS sent FROM requests "  # noqa: S608
        f"WHERE phase = '{Phase.MEASURED}' AND coalesce(turn, 0) = 0"
    ).fetchnumpy()
    intended: Times = np.sort(np.asarray(found["intended_ns"], dtype=np.int64))
    sent: Times = np.sort(_known(found["sent"]))
    if min(intended.size, sent.size) < NEEDED or min(_span_s(intended), _span_s(sent)) < NEEDED_S:
        return Sending(intended.size)
    bins, dispersion, score = _dispersion(sent) if poisson else (0, None, None)
    due_per_s = _rate(intended)
    return Sending(
        n=intended.size,
        rate_error=abs(_rate(sent) / due_per_s - 1),
        variation_error=abs(_variation(sent) - _variation(intended)) if 1 / due_per_s >= LEAST_GAP_S else None,
        dispersion=dispersion,
        dispersion_score=score,
        bins=bins,
    )


def _known(column: Any) -> Times:
    values: Times = np.ma.compressed(np.ma.asarray(column)).astype(np.int64)
    return values


def _span_s(times: Times) -> float:
    return float(times[-1] - times[0]) / 1e9


def _rate(times: Times) -> float:
    return (times.size - 1) / _span_s(times)


def _variation(times: Times) -> float:
    gaps = np.diff(times)
    return float(gaps.std() / gaps.mean())


def _dispersion(times: Times) -> tuple[int, float | None, float | None]:
    """Bins, index of dispersion, and its score: (bins - 1) times the index is chi-square of bins - 1 degrees, whose
    cube root is nearly normal (Wilson and Hilferty, PNAS 17, 1931)."""
    width_ns = max(_BIN_S, _EACH_BIN / _rate(times)) * 1e9
    bins = int((times[-1] - times[0]) // width_ns)
    if bins < _NEEDED_BINS:
        return bins, None, None
    counts = np.histogram(times - times[0], bins=bins, range=(0, bins * width_ns))[0]
    freedom = bins - 1
    index = float(counts.var(ddof=1) / counts.mean())
    spread = 2 / (9 * freedom)
    return bins, index, float(abs(np.cbrt(index) - (1 - spread)) / np.sqrt(spread))
