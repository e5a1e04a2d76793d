"""What can happen to a service, as traffic, and which alerts must then fire, by arithmetic.

The arithmetic is that of `slo.burn`: windows fill evenly. It knows nothing of the compiled rules. Evaluations come in
steps of about a seventieth of the long window in question, so that days cost no more than an hour; an alert must be
silent at the last step before its time and fire at the first after it. One sample of the window is allowed either way:
Prometheus 2 counts both ends of a range, Prometheus 3 only the later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, floor

from cliffwatch.slo.burn import BurnAlert
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.feed import Phase, Pod

TABLE_SHARES = tuple(Decimal(text) for text in ("0.01", "0.02", "0.05", "0.2", "1"))
ABSENT_ALERT = "EngineMetricsAbsent"

_STEPS_A_WINDOW = 72
_MINUTE_S = 60
_RECORD_MINUTES = 5
_UNDER, _OVER = Decimal("0.98"), Decimal("1.02")
_TIE = Decimal("1e-6")  # nearer to a threshold than this, floats decide
_LEAST_BAD = 10_000  # a minute, at the lowest threshold, so that rounding to whole events changes no share by much


@dataclass(frozen=True, slots=True)
class Check:
    """An alert fires, or is silent, at a minute. `expected_s`: seconds after the trouble began, by arithmetic."""

    minute: int
    alert: str
    firing: bool
    expected_s: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A record's value at a minute; None for no sample at all."""

    minute: int
    record: str
    value: Decimal | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Pods' traffic, evaluated every `step` minutes; trouble begins at minute `onset`."""

    name: str
    says: str
    pods: tuple[Pod, ...]
    checks: tuple[Check, ...]
    samples: tuple[Sample, ...] = ()
    step: int = 1
    onset: int = 0

    @property
    def minutes(self) -> int:
        return max(sum(phase.minutes for phase in pod.phases) for pod in self.pods)

    @property
    def expected(self) -> tuple[Check | Sample, ...]:
        return (*self.checks, *self.samples)


@dataclass(frozen=True, slots=True)
class Promise:
    """What scenarios depend on.

    Attributes:
        alerts: from the fastest burn to the slowest.
        events: a minute.
        failures_counted: bad events have series of their own, which appear with the first of them.
        absence_told: an alert tells that the engine's metrics are missing.
        instances: there may be more than one.
        from_records: even the shortest pair's long window is made of 5-minute records, which tell up to 5 minutes late.
    """

    alerts: tuple[BurnAlert, ...]
    budget: Decimal
    events: Decimal
    failures_counted: bool
    absence_told: bool
    instances: bool
    from_records: bool = False

    @property
    def quiet_share(self) -> Decimal:
        """Bad events that no alert minds."""
        return self.whole(_UNDER * min(alert.ratio for alert in self.alerts))

    def whole(self, share: Decimal) -> Decimal:
        """The nearest share that is a whole number of events a minute: a sum of fractions may seem to run backwards."""
        return (self.events * share).to_integral_value() / self.events

    def phase(self, minutes: int, share: Decimal = Decimal(0), *, restarted: bool = False) -> Phase:
        return Phase(minutes, self.events, self.events * share, restarted=restarted)

    def silent(self, minute: int) -> tuple[Check, ...]:
        return tuple(Check(minute, alert_name(alert.pair), firing=False) for alert in self.alerts)


def enough_events(alerts: Sequence[BurnAlert], min_bad_events: int) -> Decimal:
    """Events a minute, a power of ten: with the least share that fires there are bad events enough for any alert."""
    least = min(alert.ratio for alert in alerts)
    return Decimal(1).scaleb(ceil((max(_LEAST_BAD, min_bad_events) / least).log10()))


def scenarios(promise: Promise) -> list[Scenario]:
    """Everything that is tested, the table of firing times first."""
    return [*_table(promise), *_around_thresholds(promise), *_slow_burn(promise), *_without_alert(promise),
            _recovery(promise)]  # fmt: skip


def table_name(share: Decimal, alert: BurnAlert | None = None) -> str:
    """The scenario that confirms a cell of the table; without an alert, those that never fire."""
    percent = f"{(share * 100).normalize():f} % bad"
    return f"{percent}, {alert_name(alert.pair)}" if alert else f"{percent}, for ever"


def _table(promise: Promise) -> Iterator[Scenario]:
    for share in TABLE_SHARES:
        firing = [alert for alert in promise.alerts if compared(share, alert) > 0]
        for alert in firing:
            yield _onset(promise, table_name(share, alert), share, alert)
        if len(firing) < len(promise.alerts):
            yield _steady(promise, table_name(share), share)


def compared(share: Decimal, alert: BurnAlert) -> int:
    """Above (1), below (-1) or at (0) the share from which an alert fires; at it, rounding decides."""
    if abs(share - alert.ratio) <= _TIE * alert.ratio:
        return 0
    return 1 if share > alert.ratio else -1


def _onset(promise: Promise, name: str, share: Decimal, alert: BurnAlert) -> Scenario:
    """As long clean as the alert looks back, then a constant share of bad events."""
    long = alert.pair.long_s // _MINUTE_S
    step = max(1, long // _STEPS_A_WINDOW)
    expected_s = alert.fires_after_s(float(share))
    assert expected_s is not None  # noqa: S101  asked only for alerts that fire
    before, after = _steps_around(expected_s / _MINUTE_S / step, step / long)
    after += _RECORD_MINUTES if promise.from_records and step < _RECORD_MINUTES else 0
    names = alert_name(alert.pair)
    checks = [
        Check(long + before * step, names, firing=False, expected_s=expected_s),
        Check(long + after * step, names, firing=True, expected_s=expected_s),
    ]
    checks += [
        Check(long + after * step, alert_name(other.pair), firing=False)
        for other in promise.alerts
        if compared(share, other) < 0
    ]
    percent = f"{(share * 100).normalize():f}"
    return Scenario(
        name,
        f"{long} clean minutes, then {percent} % of the events are bad",
        (Pod((promise.phase(long), promise.phase(after * step, share))),),
        tuple(checks),
        step=step,
        onset=long,
    )


def _steps_around(at: float, tolerance: float) -> tuple[int, int]:
    """The last step before `at` and the first after it, `tolerance` being the share that it may be off."""
    return max(0, ceil(at * (1 - tolerance)) - 1), floor(at * (1 + tolerance)) + 1


def _steady(promise: Promise, name: str, share: Decimal) -> Scenario:
    """Nothing but this share since the first event, as every window has it in the end: 90 minutes say for ever."""
    checks = tuple(
        Check(90, alert_name(alert.pair), firing=above > 0)
        for alert in promise.alerts
        if (above := compared(share, alert))
    )
    percent = f"{(share * 100).normalize():f}"
    return Scenario(name, f"always {percent} % bad", (Pod((promise.phase(90, share),)),), checks, step=30)


def _around_thresholds(promise: Promise) -> Iterator[Scenario]:
    for alert in promise.alerts:
        for words, factor in (("just under", _UNDER), ("just over", _OVER)):
            share = promise.whole(min(Decimal(1), factor * alert.ratio))
            yield _steady(promise, f"{words} {alert_name(alert.pair)}", share)


def _slow_burn(promise: Promise) -> Iterator[Scenario]:
    """A share between the two lowest thresholds: the slowest alert alone."""
    ordered = sorted(promise.alerts, key=lambda alert: alert.ratio)
    for slowest, next_one in pairwise(ordered):
        if compared(slowest.ratio, next_one) < 0:
            yield _onset(promise, "slow burn", promise.whole((slowest.ratio + next_one.ratio) / 2), slowest)
            return


def _without_alert(promise: Promise) -> Iterator[Scenario]:
    """What looks like trouble and is none, all at a share of bad events that no alert minds."""
    share, on = promise.quiet_share, promise.phase(60, promise.quiet_share)
    left = Sample(150, "cliffwatch_slo:budget_left:ratio", 1 - share / promise.budget)
    yield Scenario(
        "idle hour",
        "an hour without any event between two with",
        (Pod((on, Phase(60), promise.phase(30, share))),),
        (*promise.silent(59), *promise.silent(119), *promise.silent(150)),
        (Sample(119, "cliffwatch_slo:bad:ratio5m", None), Sample(150, "cliffwatch_slo:bad:ratio6h", share), left),
    )
    again = promise.phase(60, share, restarted=True)
    yield Scenario(
        "counter reset",
        "every counter starts again at 0",
        (Pod((on, again)),),
        tuple(check for minute in (61, 63, 90, 120) for check in promise.silent(minute)),
        (Sample(120, "cliffwatch_slo:bad:ratio1h", share),),
    )
    if promise.instances:
        yield _rolling_upgrade(promise, on)
    told = (Check(4, ABSENT_ALERT, firing=False), Check(7, ABSENT_ALERT, firing=True)) if promise.absence_told else ()
    yield Scenario(
        "missing series",
        "nothing is exposed",
        (Pod((Phase(30, gone=True),)),),
        (*promise.silent(30), *told),
        (Sample(30, "cliffwatch_slo:bad:ratio5m", None),),
    )
    if promise.failures_counted:
        yield Scenario(
            "no failure yet",
            "bad events have no series before the first of them",
            (Pod((promise.phase(90),), without_bad=True),),
            promise.silent(90),
            (Sample(90, "cliffwatch_slo:bad:ratio1h", Decimal(0)),),
        )


def _rolling_upgrade(promise: Promise, on: Phase) -> Scenario:
    share = promise.quiet_share
    return Scenario(
        "rolling upgrade",
        "an old instance gives way to one with the newest buckets, half an hour side by side",
        (Pod((on, promise.phase(30, share), Phase(60, gone=True)), instance="old", old=True),
         Pod((Phase(60, gone=True), promise.phase(90, share)), instance="new")),
        tuple(check for minute in (62, 75, 91, 120, 150) for check in promise.silent(minute)),
        tuple(Sample(minute, "cliffwatch_slo:bad:ratio5m", share) for minute in (75, 100)),
    )  # fmt: skip


def _recovery(promise: Promise) -> Scenario:
    """The fastest alert ends with its short window, while the long one still remembers."""
    fastest = min(promise.alerts, key=lambda alert: alert.pair.long_s)
    long, short = fastest.pair.long_s // _MINUTE_S, fastest.pair.short_s // _MINUTE_S
    fires_s, resolves_s = fastest.fires_after_s(1.0), fastest.resolves_after_s(1.0)
    assert fires_s is not None and resolves_s is not None  # noqa: S101  every alert's share is under 1
    outage = max(short, ceil(fires_s / _MINUTE_S)) + 2
    still, silent = _steps_around(resolves_s / _MINUTE_S, 1 / short)
    end, name = long + outage, alert_name(fastest.pair)
    return Scenario(
        "recovery",
        f"{outage} minutes of outage that end",
        (Pod((promise.phase(long), promise.phase(outage, Decimal(1)), promise.phase(silent))),),
        (Check(end, name, firing=True), Check(end + still, name, firing=True),
         Check(end + silent, name, firing=False, expected_s=resolves_s)),
        onset=end,
    )  # fmt: skip
