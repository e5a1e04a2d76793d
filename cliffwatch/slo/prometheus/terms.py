"""What scenarios depend on: an objective's alerts and budget, and how its events are exposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from cliffwatch.slo.burn import BurnAlert
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.feed import Phase

UNDER = Decimal("0.98")  # of a threshold: nothing fires
RECORD_MINUTES = 5

_TIE = Decimal("1e-6")
_LEAST_BAD = 1_000  # a minute, at the lowest threshold, so that rounding to whole events changes no share by much


@dataclass(frozen=True, slots=True)
class Part:
    """What an objective's events are, alone or as a part of a composite.

    Attributes:
        weight: of its share of bad events; those of all parts add up to 1.
        slices: where slices of time are what is promised: their minutes, and the share of bad events that each allows.
        apart: it can be bad while the others are not; else they count on the same series.
    """

    name: str = ""
    weight: Decimal = Decimal(1)
    slices: tuple[int, Decimal] | None = None
    apart: bool = True

    def counted(self, share: Decimal) -> Decimal:
        """The share that budgets see of a share of bad events: of slices all are bad or none."""
        return share if self.slices is None else Decimal(share > self.slices[1])

    def is_limit(self, share: Decimal) -> bool:
        """Whether a slice with this share is neither surely good nor surely bad."""
        return self.slices is not None and _is_tie(share, self.slices[1])


@dataclass(frozen=True, slots=True)
class Terms:
    """What scenarios depend on.

    Attributes:
        alerts: from the fastest burn to the slowest.
        events: a minute, of each part.
        failures_counted: bad events have series of their own, which appear with the first of them.
        absence_told: an alert tells that the engine's metrics are missing.
        instances: there may be more than one.
        from_records: even the shortest pair's long window is made of 5-minute records, which tell up to 5 minutes late.
        min_bad_events: that an alert needs in its long window.
        parts: one of an objective, several of a composite, which have one share of bad events unless said otherwise.
    """

    alerts: tuple[BurnAlert, ...]
    budget: Decimal
    events: Decimal
    failures_counted: bool
    absence_told: bool
    instances: bool
    from_records: bool = False
    min_bad_events: int = 1
    parts: tuple[Part, ...] = (Part(),)

    @property
    def sliced(self) -> bool:
        """Whether slices of time are what is promised: of all parts, or of none."""
        return self.parts[0].slices is not None

    @property
    def longest_slice(self) -> int:
        """Minutes; 0 where events are what is promised."""
        return max(part.slices[0] if part.slices else 0 for part in self.parts)

    @property
    def thresholds(self) -> dict[str, Decimal]:
        """Shares of bad events from which something fires, and its name."""
        if not self.sliced:
            return {alert_name(alert.pair): alert.ratio for alert in self.alerts}
        return {
            f"the slices' share{f' of {part.name}' if part.name else ''}": part.slices[1]
            for part in self.parts
            if part.slices is not None
        }

    @property
    def quiet_share(self) -> Decimal:
        """Bad events that no alert minds."""
        return self.whole(UNDER * min(self.thresholds.values()))

    def counted(self, share: Decimal) -> Decimal:
        """The share that budgets see where every part has this share of bad events."""
        return sum((part.weight * part.counted(share) for part in self.parts), Decimal(0)) if self.sliced else share

    def compared(self, share: Decimal, alert: BurnAlert) -> int:
        """Above (1), below (-1) or at (0) the share of bad events from which it fires; there, rounding decides."""
        if any(part.is_limit(share) for part in self.parts):
            return 0
        return self.against(self.counted(share), alert)

    def against(self, counted: Decimal, alert: BurnAlert) -> int:
        """The same of a share as budgets see it."""
        if _is_tie(counted, alert.ratio):
            return 0
        return 1 if counted > alert.ratio else -1

    def fires_after_s(self, share: Decimal, alert: BurnAlert) -> float | None:
        """Seconds from a clean state; None: never.

        Slices fill a window from when they are bad, each part's by its weight; and an alert needs one bad slice, of
        whichever parts, in all.
        """
        if self.compared(share, alert) <= 0:
            return None
        if not self.sliced:
            return alert.fires_after_s(float(share))
        turned = list(self._turned(share))
        burns_s = _reached([(float(part.weight), at_s) for part, _, at_s in turned], alert.pair.long_s * alert.ratio)
        counts_s = _reached([(1 / length_s, at_s) for _, length_s, at_s in turned], Decimal(1))
        return max(burns_s, counts_s)

    def turns_after_s(self, share: Decimal) -> float:
        """Seconds until the last part that turns bad has a bad slice."""
        return max((at_s for _, _, at_s in self._turned(share)), default=0)

    def _turned(self, share: Decimal) -> Iterator[tuple[Part, int, float]]:
        """The parts whose slices are bad at a share, the seconds of a slice, and those until one is bad."""
        for part in self.parts:
            if part.slices is not None and part.counted(share):
                length_s = part.slices[0] * 60
                yield part, length_s, length_s * float(part.slices[1] / share)

    def step(self, minutes: int) -> int:
        """Minutes between evaluations. Prometheus looks back 5 minutes for a record: of slices, which are few, those
        further apart would be counted in part."""
        return min(minutes, RECORD_MINUTES) if self.sliced else minutes

    def whole(self, share: Decimal) -> Decimal:
        """The nearest share that is a whole number of events a minute: a sum of fractions may seem to run backwards."""
        return (self.events * share).to_integral_value() / self.events

    def phase(self, minutes: int, share: Decimal = Decimal(0), *, restarted: bool = False) -> Phase:
        return Phase(minutes, self.events, self.events * share, restarted=restarted)


def _is_tie(share: Decimal, limit: Decimal) -> bool:
    """So near to a limit that floats decide."""
    return abs(share - limit) <= _TIE * limit


def _reached(rises: Sequence[tuple[float, float]], level: Decimal) -> float:
    """When a sum reaches a level: each term rises by its slope a second from its own second on."""
    slope = begun = 0.0
    ordered = sorted(rises, key=lambda rise: rise[1])
    for index, (each, from_s) in enumerate(ordered):
        slope, begun = slope + each, begun + each * from_s
        at_s = (float(level) + begun) / slope
        if index + 1 == len(ordered) or at_s <= ordered[index + 1][1]:
            return at_s
    raise AssertionError("something rises")


def enough_events(alerts: Sequence[BurnAlert], min_bad_events: int) -> Decimal:
    """Events a minute, a power of ten: with the least share that fires there are bad events enough for any alert."""
    least = min(alert.ratio for alert in alerts)
    return Decimal(1).scaleb(ceil((max(_LEAST_BAD, min_bad_events) / least).log10()))
