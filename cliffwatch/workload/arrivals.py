"""When requests arrive: one function a kind, each an endless run of blocks of absolute times.

Times are whole nanoseconds since the start of the load. Times are never got by adding up rounded steps of the same
size, so a long load ends where it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.parts import ConcurrencyArrivals, ConstantArrivals, PoissonArrivals

Block = NDArray[np.int64]


def constant(spec: ConstantArrivals, _rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Arrival k at round(k / rate)."""
    first = 0
    while True:
        yield np.rint(np.arange(first, first + size) * 1e9 / spec.rate).astype(np.int64)
        first += size


def poisson(spec: PoissonArrivals, rng: np.random.Generator, size: int) -> Iterator[Block]:
    """Exponential gaps, each drawn to the nanosecond and summed as whole numbers: exact, whatever the block size."""
    last = 0
    while True:
        gaps = np.rint(rng.standard_exponential(size) * (1e9 / spec.rate)).astype(np.int64)
        times = last + np.cumsum(gaps)
        last = int(times[-1])
        yield times


def concurrency(_spec: ConcurrencyArrivals, _rng: np.random.Generator, size: int) -> Iterator[Block]:
    """A closed loop has no times of its own: zeros, which the dispatcher replaces when a user is free."""
    while True:
        yield np.zeros(size, dtype=np.int64)


ARRIVALS: dict[str, Callable[[Any, np.random.Generator, int], Iterator[Block]]] = {
    "constant": constant,
    "poisson": poisson,
    "concurrency": concurrency,
}
