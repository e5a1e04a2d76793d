"""Error budgets and burn rates: windows, factors, when an alert fires and when a budget is gone.

Multi-window, multi-burn-rate alerting as in the SRE Workbook, chapter 5: a pair fires while the share of bad events is
above `factor x budget` over a long and over a short window. A factor is not a constant: it spends `budget_share` of the
period's budget within the long window, so it is budget_share x period / long window (14.4 only for 2 % of 30 days
in 1 h). Targets are decimals: 1 - 0.999 is 0.001, not 0.0010000000000000009.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MONTH_S = 30 * DAY_S

# Where a pair could never fire, it fires when this share of the events is bad instead.
MENDED_RATIO = Decimal("0.5")


class Severity(StrEnum):
    """A page wakes somebody, a ticket waits for the morning."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class WindowPair:
    """Two windows (seconds) and the share of the period's budget that may be spent in the long one."""

    severity: Severity
    long_s: int
    short_s: int
    budget_share: Decimal


# SRE Workbook, table 5-8, and the ticket pair of a day that its text adds; Sloth's defaults are the same four.
STANDARD_PAIRS = (
    WindowPair(Severity.PAGE, HOUR_S, 5 * 60, Decimal("0.02")),
    WindowPair(Severity.PAGE, 6 * HOUR_S, 30 * 60, Decimal("0.05")),
    WindowPair(Severity.TICKET, DAY_S, 2 * HOUR_S, Decimal("0.10")),
    WindowPair(Severity.TICKET, 3 * DAY_S, 6 * HOUR_S, Decimal("0.10")),
)


def windows_of(pairs: Iterable[WindowPair]) -> tuple[int, ...]:
    """Every window of these pairs once, in seconds, ascending."""
    return tuple(sorted({length_s for pair in pairs for length_s in (pair.long_s, pair.short_s)}))


@dataclass(frozen=True, slots=True)
class BurnAlert:
    """A pair for one target and period.

    Attributes:
        factor: the burn rate above which it fires; a burn rate of 1 spends the budget in exactly the period.
        ratio: the share of bad events above which it fires, factor x budget; always under 1.
        mended_from: the factor that was asked for, where that could never have fired; else None.
    """

    pair: WindowPair
    factor: Decimal
    ratio: Decimal
    mended_from: Decimal | None = None

    def fires_after_s(self, bad: float) -> float | None:
        """Seconds from a clean state until it fires, `bad` being the share of bad events from then on, traffic even.

        The windows fill: after t the long one holds bad x t / long. None where it never fires.
        """
        ratio = float(self.ratio)
        return self.pair.long_s * ratio / bad if bad > ratio else None

    def resolves_after_s(self, bad: float) -> float | None:
        """Seconds from the end of an outage of `bad` that had filled the short window until it is silent again."""
        ratio = float(self.ratio)
        return self.pair.short_s * (1 - ratio / bad) if bad > ratio else None


def error_budget(target: Decimal) -> Decimal:
    """The share of events that may be bad. Raises ValueError unless 0 < target < 1: no budget, or nothing promised."""
    if not 0 < target < 1:
        raise ValueError(f"target {target} is not between 0 and 1")
    return 1 - target


def burn_alert(pair: WindowPair, target: Decimal, period_s: int = MONTH_S) -> BurnAlert:
    """The alert of a pair; where it could never fire (factor x budget >= 1), one that can, and says so."""
    budget = error_budget(target)
    factor = pair.budget_share * period_s / pair.long_s
    if (ratio := factor * budget) < 1:
        return BurnAlert(pair, factor, ratio)
    return BurnAlert(pair, MENDED_RATIO / budget, MENDED_RATIO, mended_from=factor)


def least_target(factor: Decimal) -> Decimal:
    """The target at and below which a factor never fires: even if all events are bad, factor x (1 - target) >= 1."""
    return 1 - 1 / factor


def burn_rate(bad: float, target: Decimal) -> float:
    """How many times faster than allowed the budget goes, `bad` being the share of bad events."""
    return bad / float(error_budget(target))


def exhausted_after_s(bad: float, target: Decimal, period_s: int = MONTH_S, left: float = 1.0) -> float | None:
    """Seconds until the `left` share of a period's budget is gone at a constant share of bad events; None: never."""
    if bad <= 0:
        return None
    return max(0.0, left) * float(error_budget(target)) * period_s / bad


def budget_left(bad_events: float, events: float, target: Decimal) -> float | None:
    """Share of the budget that is left, negative when overspent; events count alike whenever they were.

    None without any event: nothing is known, which is neither a full nor an empty budget.
    """
    if events <= 0:
        return None
    return 1 - bad_events / (events * float(error_budget(target)))
