"""Curves with and without a cliff, of the family that the detector's rates are stated for.

8 to 40 points with 3 to 20 values each that scatter by 5 to 10 %; lengths from 512 to 32768 on a log scale, or 1 to 64
in even steps; a power law (exponent 0 to 2), a floor with linear growth, or a floor with linear and quadratic growth;
the cliff, where there is one, adds 30 to 200 % from a point on that has at least two points to each side.
"""

from __future__ import annotations

import numpy as np

from cliffwatch.surface.grid import Points


def curve(generator: np.random.Generator, *, cliff: bool) -> tuple[Points, tuple[float, float] | None]:
    """Points, and the two axis values that the cliff lies between."""
    count = int(generator.integers(8, 41))
    values = int(generator.integers(3, 21))
    noise = generator.uniform(0.05, 0.1)
    x = np.geomspace(512, 32768, count) if generator.random() < 0.7 else np.linspace(1, 64, count)
    share = x / x[0]
    law = [
        0.02 * share ** generator.uniform(0, 2),
        0.02 + 0.02 * generator.uniform(0.05, 1) * share ** generator.uniform(0.8, 1.2),
        0.02 + 1e-3 * share + 1e-5 * share**2,
    ][int(generator.integers(3))]
    at = int(generator.integers(2, count - 1))
    if cliff:
        law = np.where(np.arange(count) >= at, law * (1 + generator.uniform(0.3, 2)), law)
    points = [
        (float(one), level * np.exp(generator.normal(0, noise, values))) for one, level in zip(x, law, strict=True)
    ]
    return points, (float(x[at - 1]), float(x[at])) if cliff else None
