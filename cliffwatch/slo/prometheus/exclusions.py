"""Exclusions as conditions of the records, on both sides alike, so that no ratio hears of what is left out."""

from __future__ import annotations

from dataclasses import replace

from cliffwatch.slo.exclude import WEEK_S, Maintenance
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.record import BASE_S
from cliffwatch.slo.watch import Watch


def excluded(events: Events, watch: Watch, *, reach_s: int = BASE_S) -> Events:
    """Both rates 0 in maintenance, and after it until a window of `reach_s` holds none of it.

    Windows over 5 minutes are sums of the 5-minute records then: raw ones would still hold what came in maintenance, or
    while an engine slept.
    """
    exclude = watch.exclude
    if exclude.sleeping:
        events = replace(events, raw_up_to_s=BASE_S)
    if not exclude.maintenance:
        return events
    factors = " * ".join(f"(1 - {_is_in(window, reach_s)})" for window in exclude.maintenance)
    count = len(exclude.maintenance)
    note = f"nothing counts in {count} maintenance window{'s' if count > 1 else ''} and {window_text(reach_s)} after"
    return replace(
        events,
        all_of_them=f"({events.all_of_them}) * ({factors})",
        bad=f"({events.bad}) * ({factors})",
        notes=(*events.notes, note),
        raw_up_to_s=BASE_S,
    )


def _is_in(window: Maintenance, reach_s: int) -> str:
    """1 within the window, else 0, as a scalar."""
    lasts = window.lasts_s + reach_s
    if window.weekly is None:
        return f"(time() >= bool {window.starts_s}) * (time() < bool {window.starts_s + lasts})"
    return f"((time() + {-window.starts_s % WEEK_S}) % {WEEK_S} < bool {lasts})"
