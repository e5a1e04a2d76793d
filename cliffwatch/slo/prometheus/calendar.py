"""Sums over a period of the calendar, so far.

A range of PromQL has a fixed length; a month has not. So each 5-minute rate is also recorded under a label that names
its period, such as `calendar="202612"`. The sum over a range of at least a whole period, of the label that is today's,
is that of the period so far, and begins anew at its turn. One series more a period is all it costs.
"""

from __future__ import annotations

from collections.abc import Mapping

from cliffwatch.slo.prometheus.record import Rule, base, record, recorded
from cliffwatch.slo.watch import Calendar, Watch

# A number that is one period's alone, at the moment of evaluation. 5 January 1970, day 4, was a Monday.
_NUMBER = {
    Calendar.WEEK: "floor(vector((time() / 86400 + 3) / 7))",
    Calendar.MONTH: "year() * 100 + month()",
    Calendar.QUARTER: "year() * 10 + ceil(month() / 3)",
}


def today(calendar: Calendar) -> str:
    """A vector of one series, whose label `calendar` names the period that it is now."""
    return f'count_values("calendar", {_NUMBER[calendar]})'


def period_sums(watch: Watch, labels: dict[str, str]) -> tuple[list[Rule], str, str]:
    """Rules that come before, and the sums of all 5-minute rates and of the bad ones over the period (so far)."""
    if watch.calendar is None:
        everything, failed = (f"sum_over_time({base(what, labels)}[{watch.range_text}])" for what in ("events", "bad"))
        return [], everything, failed
    now = today(watch.calendar)
    rules = [
        record(f"{what}:rate5m_{watch.calendar}", f"{base(what, labels)} * on () group_left (calendar) {now}", labels)
        for what in ("events", "bad")
    ]
    return rules, _so_far("events", watch, labels, now), _so_far("bad", watch, labels, now)


def _so_far(what: str, watch: Watch, labels: Mapping[str, str], now: str) -> str:
    series = recorded(f"{what}:rate5m_{watch.calendar}", labels)
    return f"(sum_over_time({series}[{watch.range_text}]) and on (calendar) {now})"
