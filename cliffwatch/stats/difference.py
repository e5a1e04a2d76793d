"""Two measured figures against each other: an interval of their difference, and how likely chance alone is.

The interval is MOVER: the method of variance estimates recovery (Zou and Donner, "Construction of confidence limits
about effect measures", Statistics in Medicine 27, 2008). It needs nothing but an interval of each figure, so order
statistics, shares and rates are compared alike; for two shares it is Newcombe's hybrid score interval (1998, method
10). The p-value is the smallest alpha at which the interval leaves out zero. Several p-values are put right by Holm
("A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

SMALLEST_P = 1e-9
_STEPS = 22  # halvings: the p-value to five digits


class Estimate(Protocol):
    """A figure of one run and how sure it is."""

    @property
    def value(self) -> float: ...

    def interval(self, confidence: float) -> tuple[float, float]:
        """Interval of the true figure, wider with more confidence; infinite where data do not suffice."""
        ...


def difference_interval(base: Estimate, new: Estimate, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of `new - base`; infinite on the side where an interval of either is."""
    change = new.value - base.value
    base_low, base_high = base.interval(confidence)
    new_low, new_high = new.interval(confidence)
    return (
        change - math.hypot(new.value - new_low, base_high - base.value),
        change + math.hypot(new_high - new.value, base.value - base_low),
    )


def difference_p(base: Estimate, new: Estimate) -> float:
    """Two-sided p-value that the figures are one, between 1e-9 and 1; 1 where nothing can be told."""
    sure, unsure = math.log(SMALLEST_P), 0.0
    if _differs(base, new, SMALLEST_P):
        return SMALLEST_P
    for _ in range(_STEPS):
        middle = (sure + unsure) / 2
        if _differs(base, new, math.exp(middle)):
            unsure = middle
        else:
            sure = middle
    return math.exp(unsure)


def _differs(base: Estimate, new: Estimate, alpha: float) -> bool:
    low, high = difference_interval(base, new, 1 - alpha)
    return low > 0 or high < 0


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: comparing each with alpha keeps the chance of any false alarm at alpha."""
    adjusted = [1.0] * len(p_values)
    worst = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        worst = max(worst, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = worst
    return adjusted
