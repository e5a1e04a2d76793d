"""When requests arrive: one function a kind, each a run of blocks of absolute times, endless unless the rate ends.

Times are whole nanoseconds since the start of the load. Times are never got by adding up rounded steps of the same
size, so a long load ends where it should. A block may be shorter than `size` only as the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.arrival_parts import (
    ConcurrencyArrivals,
    ConstantArrivals,
    GammaArrivals,
    ModulatedArrivals,
    PoissonArrivals,
)
from cliffwatch.workload.curves import CURVES
from cliffwatch.workload.parts import MAX_DURATION_S

Block = NDArray[np.int64]
_UNIT = 1_000_000_000  # a mean gap of a unit process; 1e9 requests of these stay within 63 bits


def constant(spec: ConstantArrivals, _rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Arrival k at round(k / rate)."""
    first = 0
    while True:
        yield np.rint(np.arange(first, first + size) * 1e9 / spec.rate).astype(np.int64)
        first += size


def poisson(spec: PoissonArrivals, rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Exponential gaps, each drawn to the nanosecond and summed as whole numbers: exact, whatever the block size."""
    return _summed(rng.standard_exponential, 1e9 / spec.rate, size)


def gamma(spec: GammaArrivals, rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Gamma gaps of shape `burstiness`, drawn and summed likewise."""
    return _gamma(spec.burstiness, rng, 1e9 / spec.rate, size)


def modulated(spec: ModulatedArrivals, rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Arrivals of a process of rate 1, each put where the curve has so many requests due."""
    when = CURVES[spec.kind](spec).when
    last = 0
    for due in _unit(spec, rng, size):
        times_s = when(due / _UNIT)
        within = times_s <= MAX_DURATION_S
        times = np.rint(times_s[within] * 1e9).astype(np.int64)
        times = np.maximum.accumulate(np.maximum(times, last))  # an inverse may be one rounding out of order
        yield times
        if not within.all():
            return
        last = int(times[-1])


def concurrency(_spec: ConcurrencyArrivals, _rng: np.random.Generator, size: int) -> Iterator[Block]:
    """A closed loop has no times of its own: zeros, which the dispatcher replaces when a user is free."""
    while True:
        yield np.zeros(size, dtype=np.int64)


def _unit(spec: ModulatedArrivals, rng: np.random.Generator, size: int) -> Iterator[Block]:
    if spec.spacing == "even":
        return (np.arange(first, first + size) * _UNIT for first in range(0, 1 << 62, size))
    if spec.burstiness is None:
        return _summed(rng.standard_exponential, _UNIT, size)
    return _gamma(spec.burstiness, rng, _UNIT, size)


def _gamma(shape: float, rng: np.random.Generator, mean: float, size: int) -> Iterator[Block]:
    """The first gap is what is left of one that began before the load did, so that no load starts with a lull.

    Seen from any moment, the gap in which it falls is longer than others (gamma of shape + 1), and the moment is
    anywhere in it (Cox 1962, Renewal Theory, section 5.2).
    """
    scale = mean / shape
    begun = round(rng.standard_gamma(shape + 1) * rng.random() * scale)
    return _summed(lambda count: rng.standard_gamma(shape, count), scale, size, begun)


def _summed(
    draw: Callable[[int], NDArray[np.float64]], scale: float, size: int, begun: int | None = None
) -> Iterator[Block]:
    """Running sums of draws times `scale`, each rounded to a whole number; `begun` stands for the first, if given."""
    last = 0
    while True:
        if begun is None:
            gaps = np.rint(draw(size) * scale).astype(np.int64)
        else:
            gaps = np.concatenate([[begun], np.rint(draw(size - 1) * scale).astype(np.int64)])
            begun = None
        times = last + np.cumsum(gaps)
        last = int(times[-1])
        yield times


ARRIVALS: dict[str, Callable[[Any, np.random.Generator, int], Iterator[Block]]] = {
    "constant": constant,
    "poisson": poisson,
    "gamma": gamma,
    **dict.fromkeys(CURVES, modulated),
    "concurrency": concurrency,
}
