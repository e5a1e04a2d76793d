"""How far one clock is from another, from questions sent over a channel whose delays nobody knows.

A question leaves at a (our clock), arrives at b and is answered at c (the other's), and the answer is here at d. Both
ways take some time, so the other clock is ahead by at most b - a and at least c - d, whatever the two delays are (the
bound of RFC 5905's on-wire protocol, without its guess that they are equal). Several exchanges within a moment narrow
it down: the truth lies within all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer, in nanoseconds: `sent` and `returned` by our clock, the others by the other's."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    returned_ns: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The other clock minus ours, in nanoseconds: the truth is within `bound_ns` of `offset_ns`."""

    offset_ns: int
    bound_ns: int


def clock_offset(exchanges: Iterable[Exchange]) -> ClockOffset | None:
    """What all exchanges together allow; None without any, or where no constant offset fits them all: a clock stepped.

    The bound is half the round trip for one exchange, and less for several.
    """
    least_ns, most_ns = None, None
    for exchange in exchanges:
        low_ns, high_ns = exchange.answered_ns - exchange.returned_ns, exchange.received_ns - exchange.sent_ns
        least_ns = low_ns if least_ns is None else max(least_ns, low_ns)
        most_ns = high_ns if most_ns is None else min(most_ns, high_ns)
    if least_ns is None or most_ns is None or least_ns > most_ns:
        return None
    return ClockOffset((least_ns + most_ns) // 2, (most_ns - least_ns + 1) // 2)
