"""Percentiles with the number of samples behind them, and the rule when they may be shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile: `value` is None where `n` is too small to have one; `few` marks one not to rely on."""

    value: float | None
    n: int
    few: bool


@dataclass(frozen=True, slots=True)
class SampleNeeds:
    """How many samples a percentile needs: `shown` to be shown at all, `sure` to be shown without a mark."""

    shown: int
    sure: int


def sample_needs(p: float) -> SampleNeeds:
    """Samples that percentile `p` needs: at least one expected above it to be shown, ten to be relied on.

    Args:
        p: a share, 0 < p < 1; taken as the decimal it is written as, so 0.9 needs 100 and not 101.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"a percentile is a share between 0 and 1, such as 0.95; got {p!r}")
    above = 1 - Fraction(repr(float(p)))
    return SampleNeeds(shown=math.ceil(1 / above), sure=math.ceil(10 / above))


def percentile(values: Sequence[float] | np.ndarray[Any, Any], p: float) -> Percentile:
    """The percentile `p` (0 < p < 1) of a sample, by linear interpolation (numpy's default, Hyndman and Fan type 7).

    Raises:
        ValueError: p is not between 0 and 1, or a value is not finite: unknown values must be left out, not passed.
    """
    needs = sample_needs(p)
    sample = np.asarray(values, dtype=np.float64)
    if not np.isfinite(sample).all():
        raise ValueError("a sample must not hold NaN or infinite values")
    shown = sample.size >= needs.shown
    return Percentile(
        value=float(np.quantile(sample, p)) if shown else None, n=int(sample.size), few=sample.size < needs.sure
    )
