"""What can happen to a service, as traffic, and which alerts must then fire, by arithmetic.

The arithmetic is that of `slo.burn`: windows fill evenly. It knows nothing of the compiled rules. Evaluations come in
steps of about a seventieth of the long window in question, so that days cost no more than an hour; an alert must be
silent at the last step before its time and fire at the first after it. One sample of the window is allowed either way:
Prometheus 2 counts both ends of a range, Prometheus 3 only the later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, floor

from cliffwatch.slo.burn import BurnAlert
from cliffwatch.slo.prometheus.alerts import alert_name
from cliffwatch.slo.prometheus.feed import Phase, Pod
from cliffwatch.slo.prometheus.terms import RECORD_MINUTES, UNDER, Terms
from cliffwatch.units import format_share

TABLE_SHARES = tuple(Decimal(text) for text in ("0.01", "0.02", "0.05", "0.2", "1"))
ABSENT_ALERT = "EngineMetricsAbsent"

_STEPS_A_WINDOW = 72
_MINUTE_S = 60
_OVER = Decimal("1.02")  # of a threshold: it fires


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


def scenarios(terms: Terms) -> list[Scenario]:
    """Everything that is tested, the table of firing times first."""
    return [*_table(terms), *_around_thresholds(terms), *_slow_burn(terms), *_without_alert(terms),
            _recovery(terms)]  # fmt: skip


def table_name(share: Decimal, alert: BurnAlert | None = None) -> str:
    """The scenario that confirms a cell of the table; without an alert, those that never fire."""
    bad = f"{format_share(share)} bad"
    return f"{bad}, {alert_name(alert.pair)}" if alert else f"{bad}, for ever"


def _silent(terms: Terms, minute: int) -> tuple[Check, ...]:
    return tuple(Check(minute, alert_name(alert.pair), firing=False) for alert in terms.alerts)


def _table(terms: Terms) -> Iterator[Scenario]:
    for share in TABLE_SHARES:
        firing = [alert for alert in terms.alerts if terms.compared(share, alert) > 0]
        for alert in firing:
            yield _onset(terms, table_name(share, alert), share, alert)
        if len(firing) < len(terms.alerts):
            yield _steady(terms, table_name(share), share)


def _onset(terms: Terms, name: str, share: Decimal, alert: BurnAlert) -> Scenario:
    """As long clean as the alert looks back, then a constant share of bad events."""
    long = alert.pair.long_s // _MINUTE_S
    step = terms.step(max(1, long // _STEPS_A_WINDOW))
    clean = long + ceil(terms.longest_slice / step) * step  # the first slice is known when it is over
    expected_s = terms.fires_after_s(share, alert)
    assert expected_s is not None  # noqa: S101  asked only for alerts that fire
    _, after = _steps_around(expected_s / _MINUTE_S / step, step / long)
    windows_s = expected_s - terms.turns_after_s(share)  # seen at some steps only, a slice may turn at an earlier one
    before, _ = _steps_around(windows_s / _MINUTE_S / step, step / long)
    after += RECORD_MINUTES if terms.from_records and step < RECORD_MINUTES else 0
    names = alert_name(alert.pair)
    checks = [
        Check(clean + before * step, names, firing=False, expected_s=expected_s),
        Check(clean + after * step, names, firing=True, expected_s=expected_s),
    ]
    checks += [
        Check(clean + after * step, alert_name(other.pair), firing=False)
        for other in terms.alerts
        if terms.compared(share, other) < 0
    ]
    return Scenario(
        name,
        f"{clean} clean minutes, then {format_share(share)} of the events are bad",
        (Pod((terms.phase(clean), terms.phase(after * step, share))),),
        tuple(checks),
        step=step,
        onset=clean,
    )


def _steps_around(at: float, tolerance: float) -> tuple[int, int]:
    """The last step before `at` and the first after it, `tolerance` being the share that it may be off."""
    return max(0, ceil(at * (1 - tolerance)) - 1), floor(at * (1 + tolerance)) + 1


def _steady(terms: Terms, name: str, share: Decimal) -> Scenario:
    """Nothing but this share since the first event, as every window has it in the end: 90 minutes say for ever."""
    checks = tuple(
        Check(90, alert_name(alert.pair), firing=above > 0)
        for alert in terms.alerts
        if (above := terms.compared(share, alert))
    )
    return Scenario(
        name, f"always {format_share(share)} bad", (Pod((terms.phase(90, share),)),), checks, step=terms.step(30)
    )


def _around_thresholds(terms: Terms) -> Iterator[Scenario]:
    for name, threshold in terms.thresholds.items():
        for words, factor in (("just under", UNDER), ("just over", _OVER)):
            yield _steady(terms, f"{words} {name}", terms.whole(min(Decimal(1), factor * threshold)))


def _slow_burn(terms: Terms) -> Iterator[Scenario]:
    """A share between the two lowest thresholds: the slowest alert alone."""
    if terms.sliced:
        return
    ordered = sorted(terms.alerts, key=lambda alert: alert.ratio)
    for slowest, next_one in pairwise(ordered):
        if terms.compared(slowest.ratio, next_one) < 0:
            yield _onset(terms, "slow burn", terms.whole((slowest.ratio + next_one.ratio) / 2), slowest)
            return


def _without_alert(terms: Terms) -> Iterator[Scenario]:
    """What looks like trouble and is none, all at a share of bad events that no alert minds."""
    share, on = terms.quiet_share, terms.phase(60, terms.quiet_share)
    counted = terms.counted(share)
    yield from _few_failures(terms)
    yield _idle_hour(terms, on)
    again = terms.phase(60, share, restarted=True)
    yield Scenario(
        "counter reset",
        "every counter starts again at 0",
        (Pod((on, again)),),
        tuple(check for minute in (61, 63, 90, 120) for check in _silent(terms, minute)),
        (Sample(120, "cliffwatch_slo:bad:ratio1h", counted),),
    )
    if terms.instances:
        yield _rolling_upgrade(terms, on)
    told = (Check(4, ABSENT_ALERT, firing=False), Check(7, ABSENT_ALERT, firing=True)) if terms.absence_told else ()
    yield Scenario(
        "missing series",
        "nothing is exposed",
        (Pod((Phase(30, gone=True),)),),
        (*_silent(terms, 30), *told),
        (Sample(30, "cliffwatch_slo:bad:ratio5m", None),),
    )
    if terms.failures_counted:
        yield Scenario(
            "no failure yet",
            "bad events have no series before the first of them",
            (Pod((terms.phase(90),), without_bad=True),),
            _silent(terms, 90),
            (Sample(90, "cliffwatch_slo:bad:ratio1h", Decimal(0)),),
        )


def _few_failures(terms: Terms) -> Iterator[Scenario]:
    """Half as many bad events as an alert needs, and no good one: what a rate of young records overrates fires."""
    if few := Decimal(terms.min_bad_events // 2):
        yield Scenario(
            "few failures",
            f"{few} bad events and no other, right after the rules were loaded",
            (Pod((Phase(5), Phase(1, few, few), Phase(60)), part=0),),
            tuple(check for minute in (6, 7, 10, 20, 66) for check in _silent(terms, minute)),
        )


def _idle_hour(terms: Terms, on: Phase) -> Scenario:
    share = terms.quiet_share
    counted = terms.counted(share)
    idle = 60 + terms.longest_slice  # whole slices without an event, too
    end = 60 + idle + 30
    samples = {"bad:ratio6h": counted, "budget_left:ratio": 1 - counted / terms.budget}
    return Scenario(
        "idle hour",
        f"{idle} minutes without any event",
        (Pod((on, Phase(idle), terms.phase(30, share))),),
        tuple(check for minute in (59, 59 + idle, end) for check in _silent(terms, minute)),
        (
            Sample(59 + idle, "cliffwatch_slo:bad:ratio5m", None),
            *(Sample(end, f"cliffwatch_slo:{record}", value) for record, value in samples.items()),
        ),
    )


def _rolling_upgrade(terms: Terms, on: Phase) -> Scenario:
    share = terms.quiet_share
    return Scenario(
        "rolling upgrade",
        "an old instance gives way to one with the newest buckets, half an hour side by side",
        (Pod((on, terms.phase(30, share), Phase(60, gone=True)), instance="old", old=True),
         Pod((Phase(60, gone=True), terms.phase(90, share)), instance="new")),
        tuple(check for minute in (62, 75, 91, 120, 150) for check in _silent(terms, minute)),
        tuple(Sample(minute, "cliffwatch_slo:bad:ratio5m", terms.counted(share)) for minute in (75, 100)),
    )  # fmt: skip


def _recovery(terms: Terms) -> Scenario:
    """The fastest alert ends with its short window, while the long one still remembers."""
    fastest = min(terms.alerts, key=lambda alert: alert.pair.long_s)
    long, short = fastest.pair.long_s // _MINUTE_S, fastest.pair.short_s // _MINUTE_S
    fires_s, resolves_s = terms.fires_after_s(Decimal(1), fastest), fastest.resolves_after_s(1.0)
    assert fires_s is not None and resolves_s is not None  # noqa: S101  every alert's share is under 1
    outage = max(short, ceil(fires_s / _MINUTE_S)) + 2 + (RECORD_MINUTES if terms.from_records else 0)
    still, silent = _steps_around(resolves_s / _MINUTE_S, 1 / short)
    resolves_s += terms.longest_slice * _MINUTE_S  # one that holds any of the outage may be bad
    silent += terms.longest_slice
    end, name = long + outage, alert_name(fastest.pair)
    return Scenario(
        "recovery",
        f"{outage} minutes of outage that end",
        (Pod((terms.phase(long), terms.phase(outage, Decimal(1)), terms.phase(silent))),),
        (Check(end, name, firing=True), Check(end + still, name, firing=True),
         Check(end + silent, name, firing=False, expected_s=resolves_s)),
        onset=end,
    )  # fmt: skip
