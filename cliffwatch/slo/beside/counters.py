"""What a counter grew by between two of its samples: nothing extrapolated, no sample left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]  # Unix seconds, value


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth from the sample at `from_s` to that at `to_s` (Unix seconds); `resets`: how often it began anew."""

    value: float
    from_s: float
    to_s: float
    resets: int


def growth(points: Sequence[Point], start_s: float, end_s: float) -> Growth | None:
    """From the last sample up to `start_s` to the first from `end_s`; where there is none, to the nearest inside.

    A value below the one before it is a restart from 0. None with fewer than two samples in between.
    """
    before = [point for point in points if point[0] <= start_s][-1:]
    inside = [point for point in points if start_s < point[0] < end_s]
    after = [point for point in points if point[0] >= end_s][:1]
    used = [*before, *inside, *after]
    if len(used) < 2 or not (inside or (before and after)):
        return None
    steps = [(old, new) for (_, old), (_, new) in pairwise(used)]
    value = sum(new if new < old else new - old for old, new in steps)
    return Growth(value, used[0][0], used[-1][0], sum(new < old for old, new in steps))
