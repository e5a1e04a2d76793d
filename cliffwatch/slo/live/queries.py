"""The questions behind a status: the compiled records where they stand, else the same expressions over raw series."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cliffwatch.engines.catalog import Metric
from cliffwatch.slo.burn import HOUR_S
from cliffwatch.slo.live.asks import SLOW_KEEP_S, Answer, Ask, Series, instant
from cliffwatch.slo.live.status import Evidence, Flow, a_share
from cliffwatch.slo.live.watched import Watched
from cliffwatch.slo.prometheus.calendar import today
from cliffwatch.slo.prometheus.events import in_unit, is_edge
from cliffwatch.slo.prometheus.promql import TAG, any_of, selector, tagged, window_s, window_text
from cliffwatch.slo.prometheus.record import BASE_S
from cliffwatch.slo.watch import TARGET_LABELS, Watch

_ONE = 1.001  # beyond what extrapolation does to both sides of a ratio
_RECORD = re.compile(r"cliffwatch_slo:(events:rate|bad:rate|bad:ratio|bad:count)([0-9]{1,6}[smhd])$")
_WHAT = {"events:rate": "events", "bad:rate": "bad", "bad:ratio": "ratio", "bad:count": "count"}

Group = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Found:
    """What was found of one objective, by group: rates, and counts, by (what, window), ratios by window; those of the
    period."""

    rates: dict[Group, dict[tuple[str, int], float]] = field(default_factory=dict)
    ratios: dict[Group, dict[int, float]] = field(default_factory=dict)
    period_bad_ratio: dict[Group, float] = field(default_factory=dict)
    period_events: dict[Group, float] = field(default_factory=dict)
    without_edge: dict[Group, set[str]] = field(default_factory=dict)
    over_one: bool = False  # more bad events than events

    def groups(self) -> list[Group]:
        """Every group of which anything is known, in order."""
        return sorted({*self.rates, *self.period_bad_ratio})

    def evidence(self, group: Group) -> Evidence:
        """What the status of a group is told from."""
        rates = self.rates.get(group, {})
        windows = {
            window: Flow(events, bad, self.ratios.get(group, {}).get(window), rates.get(("count", window)))
            for (what, window), events in rates.items()
            if what == "events" and (bad := rates.get(("bad", window))) is not None
        }
        return Evidence(
            windows,
            period_bad_ratio=self.period_bad_ratio.get(group),
            period_events=self.period_events.get(group),
            mixed=bool(self.without_edge.get(group)),
        )


def records_ask(names: Collection[str]) -> Ask:
    """Every rate and count by window and every ratio over a period, of all these SLOs."""
    metrics = "cliffwatch_slo:(events:rate|bad:rate|bad:ratio|bad:count).+"
    return instant(selector("", {}, {"__name__": metrics, "slo": any_of(names)}))


def period_ask(names: Collection[str], watch: Watch) -> Ask:
    """Events over a period: the 5-minute records laid end to end, which needs no knowledge of the rules' interval."""
    of = f"_{watch.calendar}" if watch.calendar else ""
    base = selector(f"cliffwatch_slo:events:rate5m{of}", {}, {"slo": any_of(names)})
    so_far = f" and on (calendar) {today(watch.calendar)}" if watch.calendar else ""
    return instant(f"sum_over_time({base}[{watch.range_text}:5m]) * {BASE_S}{so_far}", keep_s=SLOW_KEEP_S)


def edges_ask(watch: Watch, metric: Metric) -> Ask:
    """The bucket edges that each instance has."""
    labels = ", ".join(dict.fromkeys([*TARGET_LABELS, "le", *watch.group_by]))
    series = selector(f"{metric.name}_bucket", watch.match)
    return instant(f"group by ({labels}) ({series})", keep_s=SLOW_KEEP_S)


def raw_windows_ask(one: Watched) -> Ask:
    """Rates over every window in one question, so that all of them are of one moment."""
    return instant(_tagged(one, one.terms.windows))


def raw_period_ask(one: Watched) -> Ask:
    """Rates over the whole period: apart, since it reads the most. Not for calendars, whose length changes."""
    return instant(_tagged(one, [one.terms.period_s]), keep_s=SLOW_KEEP_S)


def take_records(answer: Answer, objectives: Mapping[tuple[str, str], Watched]) -> dict[tuple[str, str], Found]:
    """What the records say, by SLO and objective; objectives without any record are absent."""
    found: dict[tuple[str, str], Found] = {}
    for series in answer.series:
        key = (series.labels.get("slo", ""), series.labels.get("objective", ""))
        if (one := objectives.get(key)) is None:
            continue
        name, group = series.labels.get("__name__", ""), group_of(one, series.labels)
        own = found.setdefault(key, Found())
        if name == f"cliffwatch_slo:bad:ratio{one.watch.period_text}":
            own.period_bad_ratio[group] = a_share(series.value)
            own.over_one |= series.value > _ONE
        elif read := _RECORD.match(name):
            what, length_s = _WHAT[read[1]], window_s(read[2])
            if what == "ratio":
                own.ratios.setdefault(group, {})[length_s] = series.value
            else:
                _add(own, group, (what, length_s), series.value)
    return found


def take_period(one: Watched, answer: Answer, found: Found) -> None:
    """Add the events over the period, at least those of the last hour: the tiles only begin at whole 5 minutes."""
    for series in answer.series:
        if (series.labels.get("slo"), series.labels.get("objective")) == (one.slo, one.id):
            group = group_of(one, series.labels)
            found.period_events[group] = found.period_events.get(group, 0.0) + series.value
    for group, rates in found.rates.items():
        if (hourly := rates.get(("events", HOUR_S))) is not None:
            found.period_events[group] = max(found.period_events.get(group, 0.0), hourly * HOUR_S)


def take_raw(one: Watched, answer: Answer, found: Found) -> None:
    """Add rates by window from tagged raw expressions."""
    for series in answer.series:
        what, window = _untagged(series)
        _add(found, group_of(one, series.labels), (what, window), series.value)


def take_raw_period(one: Watched, answer: Answer, found: Found) -> None:
    """Add ratio and events of the period from tagged raw expressions."""
    period = Found()
    take_raw(one, answer, period)
    for group in period.rates:
        if (flow := period.evidence(group).windows.get(one.terms.period_s)) is None:
            continue
        found.period_events[group] = flow.events_per_s * one.terms.period_s
        if (ratio := flow.bad_ratio) is not None:
            found.period_bad_ratio[group] = ratio
            found.over_one |= flow.bad_per_s > flow.events_per_s * _ONE


def take_edges(one: Watched, answer: Answer, found: Found) -> None:
    """Note the instances that lack the threshold's bucket edge."""
    assert one.threshold_s is not None and one.metric is not None  # noqa: S101  asked of latency objectives only
    threshold = in_unit(one.threshold_s, one.metric)
    edges: dict[tuple[Group, tuple[str, ...]], list[float]] = {}
    for series in answer.series:
        place = (group_of(one, series.labels), tuple(series.labels.get(label, "") for label in TARGET_LABELS))
        edges.setdefault(place, []).append(float(series.labels.get("le", "inf")))
    for (group, target), own in edges.items():
        if not any(is_edge(edge, threshold) for edge in own):
            found.without_edge.setdefault(group, set()).add(" ".join(filter(None, target)))


def _tagged(one: Watched, windows: Sequence[int]) -> str:
    parts = []
    for window in windows:
        text = window_text(window)
        for what, expression in (("events", one.events.rate(text)), ("bad", one.events.bad_rate(text))):
            parts.append(tagged(expression, f"{what} {window}"))
    return "\nor ".join(parts)


def _untagged(series: Series) -> tuple[str, int]:
    what, _, window = series.labels.get(TAG, "").partition(" ")
    return what, int(window)


def _add(found: Found, group: Group, key: tuple[str, int], value: float) -> None:
    rates = found.rates.setdefault(group, {})
    rates[key] = rates.get(key, 0.0) + value


def group_of(one: Watched, labels: Mapping[str, str]) -> Group:
    """The labels of a series that `watch.group_by` names."""
    return tuple((label, labels.get(label, "")) for label in one.watch.group_by)
