"""How many bad events a long window holds, which `min_bad_events` is held against.

Rates are means: over a window that is recorded in part only they would stand for events that nobody has seen. Counts
are sums: time without records counts nothing. Records are looked at once a minute, so that nobody needs to know the
interval of the rules. An event counts in full once a record's 5 minutes have passed it; what is counted from raw series
counts at once, so a count is at least that of the longest such window.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cliffwatch.slo.burn import BurnAlert
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promql import TAG, tagged, window_text
from cliffwatch.slo.prometheus.record import BASE_S, Rule, base, record, recorded

LOOK_S = 60  # a divisor of every window


def longest_raw_s(windows: Collection[int], raw_up_to_s: int) -> int | None:
    """The longest of these windows that is counted from raw series; None where all but the base are of records."""
    return max((window for window in windows if BASE_S < window <= raw_up_to_s), default=None)


def count_name(window_s: int) -> str:
    """Such as `bad:count6h`."""
    return f"bad:count{window_text(window_s)}"


def count_rules(
    alerts: Sequence[BurnAlert], windows: Collection[int], events: Events, labels: dict[str, str]
) -> list[Rule]:
    """Records of the bad events in each alert's long window."""
    raw_s = longest_raw_s(windows, events.raw_up_to_s)
    long = sorted({alert.pair.long_s for alert in alerts})
    return [record(count_name(window), _count(window, raw_s, labels), labels) for window in long]


def _count(window_s: int, raw_s: int | None, labels: Mapping[str, str]) -> str:
    if raw_s is not None and window_s <= raw_s:
        return _raw(window_s, labels)
    looked_at = f"sum_over_time({base('bad', labels)}[{window_text(window_s)}:{window_text(LOOK_S)}]) * {LOOK_S}"
    if raw_s is None:
        return looked_at
    return f"max without ({TAG}) ({_raw(raw_s, labels)} or {tagged(looked_at, 'records')})"


def _raw(window_s: int, labels: Mapping[str, str]) -> str:
    return f"{recorded(f'bad:rate{window_text(window_s)}', labels)} * {window_s}"
