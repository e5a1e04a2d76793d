"""Series of so many events and bad events a minute: what promtool's tests are fed with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from cliffwatch.slo.watch import Watch

Series = dict[str, str]  # a series in Prometheus's notation: its values in promtool's, a minute apart


@dataclass(frozen=True, slots=True)
class Phase:
    """Even traffic for some minutes.

    Attributes:
        events, bad: a minute; `bad` of them are bad.
        restarted: every counter starts again at 0.
        gone: nothing is exposed.
    """

    minutes: int
    events: Decimal = Decimal(0)
    bad: Decimal = Decimal(0)
    restarted: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """One instance of the engine.

    Attributes:
        part: which of several objectives it has events of, by number; None: all of them, alike.
        old: it has the oldest bucket layout that the objective can be counted on, and spells edges as Go does (`5`, not
            `5.0`).
        without_bad: it exposes no series of bad events.
    """

    phases: tuple[Phase, ...]
    instance: str = "a"
    old: bool = False
    without_bad: bool = False
    part: int | None = None


class Feed(Protocol):
    """How some events are exposed."""

    def series(self, pod: Pod) -> Series: ...


@dataclass(frozen=True, slots=True)
class Fed:
    """A feed, and what scenarios must know of it.

    Attributes:
        failures_counted: bad events have series of their own, which appear with the first of them.
        instances: there may be more than one.
        slices: where slices of time are what is promised: their minutes, and the share of bad events that each allows.
        bad: what a share of bad events is a share of, for people.
    """

    feed: Feed
    failures_counted: bool = False
    instances: bool = True
    slices: tuple[int, Decimal] | None = None
    bad: str = "of the events is bad"


@dataclass(frozen=True, slots=True)
class NotFed:
    """Why events cannot be made up."""

    why: str


def labels_of(watch: Watch, instance: str) -> dict[str, str]:
    """Labels of one group and instance, as the rules match them."""
    return {**dict.fromkeys(watch.group_by, "g"), "instance": instance, **watch.match}


def counter(phases: Sequence[Phase], per_minute: Callable[[Phase], Decimal]) -> str:
    """Values of a counter, from minute 0 on; one that appears does so at 0."""
    total, was_gone = Decimal(0), phases[0].gone
    parts = ["_" if was_gone else "0"]
    for phase in phases:
        if phase.gone:
            parts.append(f"_x{phase.minutes}")
        else:
            rise = per_minute(phase)
            if was_gone or phase.restarted:
                total = -rise if was_gone else Decimal(0)
            total += rise
            parts.append(f"{_plain(total)}+{_plain(rise)}x{phase.minutes - 1}")
            total += rise * (phase.minutes - 1)
        was_gone = phase.gone
    return " ".join(parts)


def gauge(phases: Sequence[Phase], value: Callable[[Phase], Decimal]) -> str:
    """Values of a gauge, from minute 0 on: each phase has its own from the minute after the last one's end."""
    first = "_" if phases[0].gone else _plain(value(phases[0]))
    rest = (f"_x{phase.minutes}" if phase.gone else f"{_plain(value(phase))}+0x{phase.minutes - 1}" for phase in phases)
    return " ".join((first, *rest))


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}" if number else "0"
