"""Counts between fixed edges: exact at every edge, and what Prometheus calls a histogram."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

# Sum of all values, and (bucket, count) of each bucket that holds any: bucket i ends with edge i, the last nowhere.
Buckets = tuple[float, list[tuple[int, int]]]


class Histogram:
    """Values by the bucket they fall in; a value that equals an edge is below it, as `le` means.

    Attributes:
        edges: upper ends of the buckets, rising; one more bucket holds what is above them all.
        counts: count by bucket, buckets without a value left out: most of many histograms fill only a few.
        total: sum of the values.
    """

    __slots__ = ("counts", "edges", "total")

    def __init__(self, edges: Sequence[float]) -> None:
        """Raises ValueError where the edges do not rise."""
        self.edges = tuple(edges)
        if not all(low < high for low, high in pairwise(self.edges)):
            raise ValueError(f"edges must rise; got {list(edges)}")
        self.counts: dict[int, int] = {}
        self.total = 0.0

    @property
    def n(self) -> int:
        """How many values were counted."""
        return sum(self.counts.values())

    def observe(self, value: float) -> None:
        """Count a value."""
        bucket = bisect_left(self.edges, value)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.total += value

    def observe_above(self, value: float) -> None:
        """Count a value of which is known only that it is greater than `value`."""
        bucket = bisect_right(self.edges, value)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.total += value

    def buckets(self) -> Buckets:
        """What is held, in plain types; `add` is the way back."""
        return self.total, list(self.counts.items())

    def add(self, buckets: Buckets) -> None:
        """Add what another histogram of the same edges holds. Raises ValueError for a bucket that is not here."""
        total, counts = buckets
        if any(not 0 <= bucket <= len(self.edges) or count < 0 for bucket, count in counts):
            raise ValueError("is not of these edges")
        for bucket, count in counts:
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.total += total

    def running(self) -> list[int]:
        """How many values are at most each edge; last, how many there are."""
        so_far, sums = 0, []
        for bucket in range(len(self.edges) + 1):
            so_far += self.counts.get(bucket, 0)
            sums.append(so_far)
        return sums
