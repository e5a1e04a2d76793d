"""Histories in arrays, with right answers that can be worked out by hand."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from cliffwatch.slo.backtest.history import Floats, Grid, History, Rates
from cliffwatch.slo.backtest.replay import Promise
from cliffwatch.slo.burn import Severity, WindowPair, burn_alert
from cliffwatch.slo.prometheus.record import BASE_S

STEP_S = 60.0
DAY_S = 86_400
PAGE = WindowPair(Severity.PAGE, 3600, 300, Decimal("0.12"))
TICKET = WindowPair(Severity.TICKET, 7200, 600, Decimal("0.10"))


def promise(target: str = "0.9", *, period_s: int = DAY_S, min_bad_events: int = 1) -> Promise:
    """Of one page and one ticket."""
    alerts = tuple(burn_alert(pair, Decimal(target), period_s) for pair in (PAGE, TICKET))
    return Promise(Decimal(target), period_s, alerts, min_bad_events)


def history(events: Floats, bad: Floats, *, lead: int = 0) -> History:
    """5-minute rates at every minute; longer windows are their means."""
    rates: Rates = {("events", BASE_S): events, ("bad", BASE_S): bad}
    return History(Grid(1e9 // 60 * 60 - lead * STEP_S, STEP_S, len(events), lead), rates)


def steady(minutes: int, ratio: float = 0.0, *, rate: float = 1.0) -> tuple[Floats, Floats]:
    """Rates of events and bad events, constant."""
    return np.full(minutes, rate), np.full(minutes, rate * ratio)
