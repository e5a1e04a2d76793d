"""A latency along one axis: the points that cliffs and knees are looked for in, with the noise of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

LOG_SPAN = 16  # an axis whose greatest value is so many times its least is read on a log scale
OWN_SPREAD_FROM = 10  # values of a point from which its own spread is used; fewer share that of all points
LEAST_SPREAD = 1e-3  # of ln: no clock and no engine is steadier
Array = np.ndarray[Any, np.dtype[np.float64]]

# Standard error of a statistic of n normal values of spread s is factor * s / sqrt(n): the mean's 1, a quantile's
# sqrt(p (1 - p)) / density at it (asymptotic; e.g. Serfling, Approximation Theorems, 2.3.3).
STATISTICS = {"mean": None, "p50": 0.5, "p90": 0.9, "p95": 0.95}


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order of the axis.

    Attributes:
        x: axis values, ascending, at least one.
        y: the statistic at each, positive.
        n: values behind each.
        error: standard error of ln(y) at each, from the values' spread; all 1 where no point has two values.
        spare: degrees of freedom behind the errors; 0: nothing is known of them.
        log: whether the axis is read on a log scale.
    """

    x: Array
    y: Array
    n: np.ndarray[Any, np.dtype[np.int64]]
    error: Array
    spare: int
    log: bool

    @property
    def place(self) -> Array:
        """Axis values on the scale that they are read on."""
        return np.log(self.x) if self.log else self.x

    @property
    def level(self) -> Array:
        """ln(y): a power law of the axis is a straight line of it on a log scale."""
        return np.log(self.y)

    def part(self, start: int, end: int) -> Series:
        """Points start to end, end left out."""
        cut = slice(start, end)
        return Series(self.x[cut], self.y[cut], self.n[cut], self.error[cut], self.spare, self.log)


def logs_of(points: Sequence[tuple[float, Array]]) -> list[tuple[float, Array]]:
    """(axis value, ln of the values there) in order; values that are not positive, and points without any, left out."""
    logs = [(x, np.log(values[values > 0])) for x, values in sorted(points, key=lambda point: point[0])]
    return [(x, values) for x, values in logs if values.size]


def pooled_spread(logs: Sequence[Array]) -> tuple[float, int]:
    """(standard deviation within points, over all of them; its degrees of freedom): not a number, 0 if none has two."""
    spare = sum(values.size - 1 for values in logs)
    within = sum(float(((values - values.mean()) ** 2).sum()) for values in logs)
    return (math.sqrt(within / spare) if spare else math.nan), spare


def floored_error(error: Array) -> Array:
    """No point is so sure that it alone decides: a tenth of the usual error at least."""
    return np.maximum(error, 0.1 * float(np.median(error[error > 0])))


def spans_far(x: Array) -> bool:
    """Whether an axis is read on a log scale."""
    return bool(x.size) and bool(x[0] > 0) and bool(x[-1] >= LOG_SPAN * x[0])


def series_of(points: Sequence[tuple[float, Array]], statistic: str = "p50") -> Series:
    """The series of (axis value, latencies there); values that are not positive are left out, and so are empty points.

    Latencies scatter by a factor, so noise is measured in ln; points with few values share the spread of all.
    """
    kept = logs_of(points)
    share = STATISTICS[statistic]
    n = np.array([values.size for _, values in kept], dtype=np.int64)
    y = [math.log(np.exp(values).mean()) if share is None else float(np.quantile(values, share)) for _, values in kept]
    own = np.array([values.std(ddof=1) if values.size > 1 else math.nan for _, values in kept])
    pooled, spare = pooled_spread([values for _, values in kept])
    spread = np.maximum(np.where(n >= OWN_SPREAD_FROM, own, pooled), LEAST_SPREAD)
    factor = 1.0 if share is None else math.sqrt(share * (1 - share)) / float(stats.norm.pdf(stats.norm.ppf(share)))
    x = np.array([value for value, _ in kept], dtype=np.float64)
    error = factor * spread / np.sqrt(n) if spare else np.ones(len(kept))
    return Series(x, np.exp(np.array(y)), n, error, spare, spans_far(x))
