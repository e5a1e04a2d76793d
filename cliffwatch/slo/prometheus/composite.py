"""Composites as rules over the records of their parts.

The ratio over each window is the weighted mean of the parts' own ratios over it, each of them a sum over a sum. A part
without events has no ratio, and its weight is left out; a mean over time would let quiet hours outweigh busy ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cliffwatch.slo.burn import BurnAlert, windows_of
from cliffwatch.slo.composite import Composite, Kind
from cliffwatch.slo.prometheus.counts import count_name
from cliffwatch.slo.prometheus.promql import summed, window_text
from cliffwatch.slo.prometheus.record import BASE_S, Rule, against_target, record, recorded
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written

Labels = Mapping[str, str]


def composite_rules(
    one: Composite, watch: Watch, labels: dict[str, str], parts: Sequence[Labels], alerts: Sequence[BurnAlert]
) -> list[Rule]:
    """Records of a composite; `parts` are the labels of its objectives, in its order."""
    if one.kind is Kind.ANY or one.target is None:
        by = f" by ({', '.join(watch.group_by)})" if watch.group_by else ""
        least = f"min{by} ({' or '.join(recorded('budget_left:ratio', part) for part in parts)})"
        return [record("budget_left:ratio", least, {**labels, "period": watch.period_text})]
    windows = sorted({*windows_of(alert.pair for alert in alerts), BASE_S})
    rules = []
    for text in map(window_text, windows):
        rules += [record(name, _sum(name, watch, parts), labels) for name in (f"events:rate{text}", f"bad:rate{text}")]
        rules.append(record(f"bad:ratio{text}", _mean(f"bad:ratio{text}", one, watch, parts), labels))
    whole = f"bad:ratio{watch.period_text}"
    counts = [record(name, _sum(name, watch, parts), labels) for name in (count_name(a.pair.long_s) for a in alerts)]
    ratio = record(whole, _mean(whole, one, watch, parts), labels)
    return [*rules, *counts, ratio, *against_target(as_written(one.target), watch.period_text, labels)]


def _sum(name: str, watch: Watch, parts: Sequence[Labels]) -> str:
    return summed(watch.group_by, " or ".join(recorded(name, part) for part in parts))


def _mean(name: str, one: Composite, watch: Watch, parts: Sequence[Labels]) -> str:
    series = [(recorded(name, part), f"{weight:.15g}") for part, weight in zip(parts, one.shares, strict=True)]
    bad = " or ".join(f"{ratio} * {weight}" for ratio, weight in series)
    known = " or ".join(f"{ratio} * 0 + {weight}" for ratio, weight in series)
    return f"{summed(watch.group_by, bad)} / {summed(watch.group_by, known)}"
