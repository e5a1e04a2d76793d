"""How long prompts and answers are: one function a kind, one random number a length.

One number a length keeps the stream the same however it is cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.parts import (
    EmpiricalLength,
    FixedLength,
    LogNormalLength,
    LogUniformLength,
    UniformLength,
)

Lengths = NDArray[np.int64]


def fixed(spec: FixedLength, _rng: np.random.Generator, size: int) -> Lengths:
    return np.full(size, spec.value, dtype=np.int64)


def uniform(spec: UniformLength, rng: np.random.Generator, size: int) -> Lengths:
    """Whole numbers from min to max, both included."""
    drawn: Lengths = (spec.min + np.floor(rng.random(size) * (spec.max - spec.min + 1))).astype(np.int64)
    return drawn


def loguniform(spec: LogUniformLength, rng: np.random.Generator, size: int) -> Lengths:
    """P(k) = log((k + 1) / k) / log((max + 1) / min) for k from min to max, both included."""
    low, high = np.log(spec.min), np.log(spec.max + 1)
    drawn: Lengths = np.floor(np.exp(low + rng.random(size) * (high - low))).astype(np.int64)
    return drawn.clip(spec.min, spec.max)  # exp(log(x)) may miss x by one rounding


def lognormal(spec: LogNormalLength, rng: np.random.Generator, size: int) -> Lengths:
    """round(median exp(sigma z)), clamped to min and max, which keeps the median."""
    drawn = np.rint(spec.median * np.exp(spec.sigma * rng.standard_normal(size)))
    clamped: Lengths = drawn.clip(spec.min, spec.max).astype(np.int64)
    return clamped


def empirical(spec: EmpiricalLength, rng: np.random.Generator, size: int) -> Lengths:
    """values[i] with probability weights[i] / sum(weights)."""
    index = draw_index(spec.weights or [1.0] * len(spec.values), rng, size)
    drawn: Lengths = np.asarray(spec.values, dtype=np.int64)[index]
    return drawn


def draw_index(weights: Sequence[float], rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Index i with probability weights[i] / sum(weights), one random number each."""
    shares = np.asarray(weights, dtype=np.float64)
    edges = np.cumsum(shares / shares.sum())
    drawn: NDArray[np.int64] = np.searchsorted(edges, rng.random(size) * edges[-1], side="right")
    return drawn


LENGTHS: dict[str, Callable[[Any, np.random.Generator, int], Lengths]] = {
    "fixed": fixed,
    "uniform": uniform,
    "loguniform": loguniform,
    "lognormal": lognormal,
    "empirical": empirical,
}
