"""A composite's parts fed side by side, and which of them can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from cliffwatch.slo.composite import Composite
from cliffwatch.slo.prometheus.feed import Fed, NotFed, Phase, Pod, Series
from cliffwatch.slo.prometheus.feeds import feed_of
from cliffwatch.slo.prometheus.terms import Part
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch

_CLEAN, _MIXED = (Pod((Phase(1, Decimal(100), Decimal(bad)),)) for bad in (0, 5))


@dataclass(frozen=True, slots=True)
class Together:
    """The feeds of all parts as one feed."""

    parts: tuple[Fed, ...]

    def series(self, pod: Pod) -> Series:
        chosen = self.parts if pod.part is None else (self.parts[pod.part],)
        return {name: values for one in chosen for name, values in one.feed.series(pod).items()}

    def apart(self, part: int) -> bool:
        """Whether a part can be bad while the others are not."""
        own = self.parts[part].feed.series(_MIXED)
        others = [one.feed.series(_CLEAN) for index, one in enumerate(self.parts) if index != part]
        return all(own[name] == other[name] for other in others for name in own.keys() & other.keys())


def together(one: Composite, objectives: Sequence[Objective], watch: Watch) -> Together | NotFed:
    """The feeds of a composite's objectives, or why they cannot be fed side by side."""
    fed: list[Fed] = []
    for name, objective in zip(one.of, objectives, strict=True):
        found = feed_of(objective, watch, alone=False)
        if isinstance(found, NotFed):
            return NotFed(f"its part {name} cannot be: {found.why}")
        fed.append(found)
    exposed = [each.feed.series(_MIXED) for each in fed]
    for first, second in combinations(range(len(fed)), 2):
        written = objectives[first].promql is not None or objectives[second].promql is not None
        if _disturb(exposed[first], exposed[second], written=written):
            return NotFed(f"its parts {one.of[first]} and {one.of[second]} count on the same metric, each its own way")
    return Together(tuple(fed))


def parts_of(one: Composite, feed: Together) -> tuple[Part, ...]:
    """What scenarios must know of each part."""
    whole = sum(map(_exact, one.shares))
    return tuple(
        Part(name, _exact(weight) / whole, fed.slices, feed.apart(index))
        for index, (name, weight, fed) in enumerate(zip(one.of, one.shares, feed.parts, strict=True))
    )


def _exact(weight: float) -> Decimal:
    return Decimal(repr(weight))


def _disturb(one: Series, other: Series, *, written: bool) -> bool:
    """Whether series of one objective would be counted by another as well, which no feed of one alone knows of."""
    if any(one[name] != other[name] for name in one.keys() & other.keys()):
        return True
    return written and bool({name.split("{")[0] for name in one} & {name.split("{")[0] for name in other})
