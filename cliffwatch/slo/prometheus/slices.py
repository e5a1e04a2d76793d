"""Promises about slices of time, as events: a slice is one event, good or bad as a whole.

At every evaluation the slice that just ended is looked at, so slices overlap. Over a long time the share of bad ones is
that of slices laid end to end, whatever moment these begin at; and a bad slice is seen at once. Rates are of whole
slices a second. A slice without events is neither good nor bad: it counts 0 of 0.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.events import Events, exposed, metric_of, refuse_groups
from cliffwatch.slo.prometheus.promql import summed, window_text
from cliffwatch.slo.prometheus.record import BASE_S, Rule, record, recorded
from cliffwatch.slo.prometheus.series import engine_range, engine_rate
from cliffwatch.slo.slices import Slices
from cliffwatch.slo.watch import Watch
from cliffwatch.units import as_written

_TOLERANCE = Decimal("1e-9")  # shares on their limit are within it, whatever the last bits of a rate say
_HALF_AN_EVENT = 0.5  # counts over a window are extrapolated: 5 events may read 4.9


def sliced(slices: Slices, events: Events, labels: dict[str, str]) -> tuple[list[Rule], Events]:
    """Records of each slice's events and bad events, and the slices as events."""
    text, length = window_text(round(slices.length)), round(slices.length)
    assert slices.share is not None  # noqa: S101  the SLO file's own check
    rules = [
        record("slice:events", f"({events.rate(text)}) * {length}", labels),
        record("slice:bad", f"({events.bad_rate(text)}) * {length}", labels),
    ]
    all_of_them, bad = recorded("slice:events", labels), recorded("slice:bad", labels)
    counts = f"({all_of_them} >= bool {slices.min_events - _HALF_AN_EVENT:g})"
    allowed = 1 - as_written(slices.share) + _TOLERANCE
    return rules, _events(counts, f"({bad} > bool {all_of_them} * {allowed:f})", length, events)


def throughput(slices: Slices, watch: Watch, labels: dict[str, str], *, field: str) -> tuple[list[Rule], Events]:
    """Slices by tokens a second; one counts where some engine of the group had requests in its batch throughout.

    Raises:
        InputError: the engine does not tell tokens generated, or whether it works, or not by the labels of the file.
    """
    engine = watch.catalog
    source, running = engine.slis.get("throughput"), engine.signals.get("running")
    if source is None or not source.metrics or running is None:
        lacking = (source.lacking if source else None) or "no count of tokens, or of running requests"
        message = f"is nothing that {engine.title} exposes: {lacking}"
        raise InputError(message, field=f"{field}.sli", value="throughput", allowed=exposed(engine))
    metric = metric_of(engine, source, watch, f"{field}.sli")
    for one in (metric, engine.metric(running)):
        refuse_groups(one, watch, "throughput")
    text, length = window_text(round(slices.length)), round(slices.length)
    counter = f"{metric.name}_sum" if metric.type == "histogram" else metric.name
    match = next((one.match for one in source.events if one.metric == metric.name), {})
    tokens = summed(watch.group_by, engine_rate(counter, watch, match))
    at_work = engine_range(running, watch)
    # An engine younger than the slice would seem slow: its rate is of a part of it.
    throughout = f"min_over_time({at_work}) and {at_work.removesuffix('[{window}]')} offset {{window}}"
    busy = summed(watch.group_by, throughout)
    rules = [
        record("slice:tokens_rate", tokens.replace("{window}", text), labels),
        record("slice:busy", busy.replace("{window}", text), labels),
    ]
    counts = f"({recorded('slice:busy', labels)} > bool 0)"
    slow = f"({recorded('slice:tokens_rate', labels)} < bool {slices.tokens_per_s:.15g})"
    return rules, _events(counts, slow, length, Events("", "", metric.name, (source.note,) if source.note else ()))


def _events(counts: str, bad: str, length: int, of: Events) -> Events:
    return replace(of, all_of_them=f"{counts} / {length}", bad=f"{bad} * {counts} / {length}", raw_up_to_s=BASE_S)
