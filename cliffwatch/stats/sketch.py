"""A histogram that can be sent and added up: percentiles of many workers' values within a known relative error.

Buckets grow by the factor g = (1 + a) / (1 - a): bucket i holds the values in (g^(i-1), g^i]. Its representative
2 g^i / (g + 1) is off by at most the share a from anything in it, so every order statistic is, and so is every
interpolation between two of them. (The idea is DDSketch's: Masson, Rim, Lee, "DDSketch", VLDB 2019, sections 2.1, 2.2.)
Adding two sketches adds bucket counts, which gives exactly the sketch of all values together, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cliffwatch.stats.percentile import Percentile, sample_needs

DEFAULT_ERROR = 0.01
SMALLEST = 1e-9  # a nanosecond: what is below counts as zero


class Sketch:
    """Counts of non-negative values in logarithmic buckets. Memory grows with the range of values, not their number.

    For values between 1 us and 1000 s and the default error of 1 % there are at most 1,037 buckets.

    Attributes:
        relative_error: the bound a on the error of a percentile, as a share of it. Values under 1e-9 count as 0.
    """

    __slots__ = ("_buckets", "_factor_log", "_highest", "_lowest", "_zeros", "relative_error")

    def __init__(self, relative_error: float = DEFAULT_ERROR) -> None:
        if not 0 < relative_error < 1:
            raise ValueError(f"relative_error must be between 0 and 1; got {relative_error!r}")
        self.relative_error = relative_error
        self._factor_log = math.log1p(relative_error) - math.log1p(-relative_error)
        self._buckets: dict[int, int] = {}
        self._zeros = 0
        self._lowest = math.inf
        self._highest = -math.inf

    @property
    def n(self) -> int:
        """How many values were added."""
        return self._zeros + sum(self._buckets.values())

    def add(self, value: float) -> None:
        """Count one value. Raises ValueError for a negative, infinite or NaN value."""
        if not 0 <= value < math.inf:
            raise ValueError(f"a sketch holds finite values that are not negative; got {value!r}")
        if value < SMALLEST:
            self._zeros += 1
            value = 0.0
        else:
            bucket = math.ceil(math.log(value) / self._factor_log)
            self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        if value < self._lowest:
            self._lowest = value
        if value > self._highest:
            self._highest = value

    def merge(self, other: Sketch) -> Sketch:
        """The sketch of both sets of values; neither is changed. Raises ValueError where the errors differ."""
        if other.relative_error != self.relative_error:
            raise ValueError(
                f"sketches of different errors cannot be added: {self.relative_error} and {other.relative_error}"
            )
        both = Sketch(self.relative_error)
        both._buckets = dict(self._buckets)
        for bucket, count in other._buckets.items():
            both._buckets[bucket] = both._buckets.get(bucket, 0) + count
        both._zeros = self._zeros + other._zeros
        both._lowest = min(self._lowest, other._lowest)
        both._highest = max(self._highest, other._highest)
        return both

    def percentile(self, p: float) -> Percentile:
        """Percentile `p` (0 < p < 1) within `relative_error` of what `stats.percentile` gives for the same values."""
        needs = sample_needs(p)
        n = self.n
        if n < needs.shown:
            return Percentile(value=None, n=n, few=True)
        place = p * (n - 1)
        lower = math.floor(place)
        low, high = self._at(lower), self._at(min(lower + 1, n - 1))
        return Percentile(value=low + (high - low) * (place - lower), n=n, few=n < needs.sure)

    def _at(self, rank: int) -> float:
        """The value at a rank (0 is the smallest); the ends are known exactly, and no estimate lies beyond them."""
        passed = self._zeros
        if rank < passed:
            return 0.0
        for bucket in sorted(self._buckets):
            passed += self._buckets[bucket]
            if rank < passed:
                return min(max(self._middle(bucket), self._lowest), self._highest)
        return self._highest

    def _middle(self, bucket: int) -> float:
        return math.exp(bucket * self._factor_log) * (1 - self.relative_error)

    def values(self) -> list[tuple[float, int]]:
        """(a value within `relative_error` of those in one bucket, how many they are), from the smallest up."""
        zeros = [(0.0, self._zeros)] if self._zeros else []
        return zeros + [(self._middle(bucket), self._buckets[bucket]) for bucket in sorted(self._buckets)]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and None, for JSON or msgpack; `from_dict` is the way back."""
        return {
            "relative_error": self.relative_error,
            "zeros": self._zeros,
            "lowest": self._lowest if self.n else None,
            "highest": self._highest if self.n else None,
            "buckets": [[bucket, self._buckets[bucket]] for bucket in sorted(self._buckets)],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sketch:
        """Rebuild a sketch. Raises ValueError where `data` is not what `to_dict` gives."""
        try:
            sketch = cls(float(data["relative_error"]))
            sketch._zeros = int(data["zeros"])
            sketch._buckets = {int(bucket): int(count) for bucket, count in data["buckets"]}
            if sketch.n:
                sketch._lowest, sketch._highest = float(data["lowest"]), float(data["highest"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"is not a sketch: {error}") from error
        if sketch._zeros < 0 or any(count < 1 for count in sketch._buckets.values()):
            raise ValueError("is not a sketch: a count is not positive")
        if sketch.n and not 0 <= sketch._lowest <= sketch._highest < math.inf:
            raise ValueError("is not a sketch: its ends are not in order")
        return sketch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it changes
