"""What scenarios depend on: an objective's alerts and budget, and how its events are exposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from cliffwatch.slo.burn import BurnAlert
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.feed import Phase

UNDER = Decimal("0.98")  # of a threshold: nothing fires
RECORD_MINUTES = 5

_TIE = Decimal("1e-6")  # nearer to a threshold than this, floats decide
_LEAST_BAD = 1_000  # a minute, at the lowest threshold, so that rounding to whole events changes no share by much


@dataclass(frozen=True, slots=True)
class Terms:
    """What scenarios depend on.

    Attributes:
        alerts: from the fastest burn to the slowest.
        events: a minute.
        failures_counted: bad events have series of their own, which appear with the first of them.
        absence_told: an alert tells that the engine's metrics are missing.
        instances: there may be more than one.
        from_records: even the shortest pair's long window is made of 5-minute records, which tell up to 5 minutes late.
        min_bad_events: that an alert needs in its long window.
        slices: where slices of time are what is promised: their minutes, and the share of bad events that each allows.
    """

    alerts: tuple[BurnAlert, ...]
    budget: Decimal
    events: Decimal
    failures_counted: bool
    absence_told: bool
    instances: bool
    from_records: bool = False
    min_bad_events: int = 1
    slices: tuple[int, Decimal] | None = None

    @property
    def thresholds(self) -> dict[str, Decimal]:
        """Shares of bad events from which something fires, and its name."""
        if self.slices is not None:
            return {"the slices' share": self.slices[1]}
        return {alert_name(alert.pair): alert.ratio for alert in self.alerts}

    @property
    def quiet_share(self) -> Decimal:
        """Bad events that no alert minds."""
        return self.whole(UNDER * min(self.thresholds.values()))

    def counted(self, share: Decimal) -> Decimal:
        """The share that budgets see of a share of bad events: of slices all are bad or none."""
        return share if self.slices is None else Decimal(share > self.slices[1])

    def compared(self, share: Decimal, alert: BurnAlert) -> int:
        """Above (1), below (-1) or at (0) the share of bad events from which it fires; there, rounding decides."""
        threshold = alert.ratio if self.slices is None else self.slices[1]
        if abs(share - threshold) <= _TIE * threshold:
            return 0
        return 1 if share > threshold else -1

    def fires_after_s(self, share: Decimal, alert: BurnAlert) -> float | None:
        """Seconds from a clean state; None: never. A slice is bad once enough of it is, and an alert needs one."""
        if self.compared(share, alert) <= 0:
            return None
        windows_s = alert.fires_after_s(float(self.counted(share)))
        if self.slices is None or windows_s is None:
            return windows_s
        return max(windows_s, self.slices[0] * 60) + self.turns_after_s(share)

    def turns_after_s(self, share: Decimal) -> float:
        """Seconds until a slice is bad."""
        return 0 if self.slices is None else self.slices[0] * 60 * float(self.slices[1] / share)

    def step(self, minutes: int) -> int:
        """Minutes between evaluations. Prometheus looks back 5 minutes for a record: of slices, which are few, those
        further apart would be counted in part."""
        return minutes if self.slices is None else min(minutes, RECORD_MINUTES)

    def whole(self, share: Decimal) -> Decimal:
        """The nearest share that is a whole number of events a minute: a sum of fractions may seem to run backwards."""
        return (self.events * share).to_integral_value() / self.events

    def phase(self, minutes: int, share: Decimal = Decimal(0), *, restarted: bool = False) -> Phase:
        return Phase(minutes, self.events, self.events * share, restarted=restarted)


def enough_events(alerts: Sequence[BurnAlert], min_bad_events: int) -> Decimal:
    """Events a minute, a power of ten: with the least share that fires there are bad events enough for any alert."""
    least = min(alert.ratio for alert in alerts)
    return Decimal(1).scaleb(ceil((max(_LEAST_BAD, min_bad_events) / least).log10()))
