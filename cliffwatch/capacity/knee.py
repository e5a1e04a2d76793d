"""The knee of the curve: where goodput stops following the rate.

Two straight lines that meet, fitted by least squares for every place of the knee; its interval holds the places whose
fit is not worse than the best beyond chance (likelihood ratio for a change point: Seber and Lee, "Linear Regression
Analysis", 2nd ed., 6.5). Goodput of a server follows the rate up to the knee and stays or falls beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from cliffwatch.capacity.evidence import Array
from cliffwatch.stats.estimates import student

MIN_PROBES = 5  # two lines have four parameters: one more to know how far off they are
PLACES = 400
# Student's t at 97.5 % for 1 to 8 degrees of freedom, where its expansion around the normal one is not good enough
STUDENT_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)


class Knee(BaseModel):
    """Rate of the knee with its 95 % interval, over `n` rates; all null where the curve does not tell, see `reason`."""

    model_config = ConfigDict(frozen=True)

    n: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


def find_knee(rates: Sequence[float], goodput: Sequence[float]) -> Knee:
    """The knee of goodput (requests a second) against the rate (or number of users)."""
    x, y = np.asarray(rates, dtype=np.float64), np.asarray(goodput, dtype=np.float64)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    distinct = np.unique(x)
    if len(distinct) < MIN_PROBES:
        return Knee(n=len(x), reason=f"{len(distinct)} rates were probed, a knee needs {MIN_PROBES}")
    places = np.linspace(distinct[1], distinct[-2], PLACES)
    errors = np.array([_error(x, y, place)[0] for place in places])
    best = int(np.argmin(errors))
    _, before, after = _error(x, y, places[best])
    if not before > 0 or after > before / 2:
        return Knee(n=len(x), reason="goodput does not bend away from the rate")
    degrees = len(x) - 4
    # F with one and `degrees` degrees of freedom is the square of Student's t
    quantile = STUDENT_975[degrees - 1] if degrees <= len(STUDENT_975) else student(0.975, degrees)
    allowed = errors[best] * (1 + quantile**2 / degrees) + 1e-12 * float(y @ y)
    inside = places[errors <= allowed]
    low, high = float(inside[0]), float(inside[-1])
    if low <= places[0] and high >= places[-1]:
        return Knee(n=len(x), reason="the curve bends, but the probes do not tell where")
    return Knee(n=len(x), rate=float(places[best]), low=low, high=high)


def _error(x: Array, y: Array, place: float) -> tuple[float, float, float]:
    """Squared error of the two lines that meet at `place`, and their slopes."""
    design = np.stack([np.ones_like(x), np.minimum(x, place), np.maximum(x - place, 0)], axis=1)
    found, *_ = np.linalg.lstsq(design, y, rcond=None)
    return float(np.sum((y - design @ found) ** 2)), float(found[1]), float(found[2])
