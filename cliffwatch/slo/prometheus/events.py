"""An objective as two rates on Prometheus: all events, and the bad ones. Refused where it cannot be exact.

A latency objective counts on a bucket edge: all events less those at or under the edge. Between edges nobody can say
which side an event fell on, and `le` of an edge that does not exist matches nothing and never alerts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from cliffwatch.engines.catalog import Engine, Metric, Series, SliSource
from cliffwatch.errors import InputError
from cliffwatch.slo.prometheus.promql import le_pattern, summed, window_s
from cliffwatch.slo.prometheus.series import engine_rate, labels_of, rate_from_birth
from cliffwatch.slo.sli import Clock, Sli
from cliffwatch.slo.slices import Promql
from cliffwatch.slo.spec import Objective
from cliffwatch.slo.watch import Watch
from cliffwatch.units import format_seconds

_TOLERANCE = 1e-9
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True, slots=True)
class Events:
    """Rates of one objective as PromQL templates: `{window}` stands for a range such as 5m, `{seconds}` for its length.

    Attributes:
        metric: what it counts on, for people.
        notes: what the figures leave out.
        raw_up_to_s: longer windows are sums of the 5-minute records: reading days of raw buckets costs too much, and
            what was left out then can only be seen in them.
    """

    all_of_them: str
    bad: str
    metric: str
    notes: tuple[str, ...] = ()
    raw_up_to_s: int = 3600

    def rate(self, window: str) -> str:
        """Events a second, a group."""
        return _over(self.all_of_them, window)

    def bad_rate(self, window: str) -> str:
        """Bad events a second, a group; 0, not absent, where there was none."""
        return _over(self.bad, window)


def _over(template: str, window: str) -> str:
    return template.replace("{window}", window).replace("{seconds}", str(window_s(window)))


def in_unit(seconds: float, metric: Metric) -> float:
    """A time in the metric's own unit."""
    return seconds * _PER_SECOND[metric.unit]


def is_edge(edge: float, threshold: float) -> bool:
    """Whether a bucket edge is the threshold, as numbers that went through text are equal."""
    return abs(edge - threshold) <= _TOLERANCE * threshold


def events_of(objective: Objective, watch: Watch, *, field: str) -> Events:
    """The rates of an objective; `field` names it in refusals.

    Raises:
        InputError: the engine has no metric for it, or none that can be exact; names the mend.
    """
    if objective.promql is not None:
        return _as_written(objective.promql, watch)
    engine = watch.catalog
    source = engine.slis.get(objective.sli.value)  # type: ignore[call-overload]
    if objective.input_tokens or objective.clock is Clock.INTENDED:
        what = "input_tokens" if objective.input_tokens else "clock"
        raise InputError("is known to load runs only", field=f"{field}.{what}", allowed="objectives without it")
    if objective.sli is Sli.GOODPUT:
        message = "is known to load runs only: engines count each objective by itself, not which requests met all"
        bounds = f"the others alone; where their shares of bad requests add up to at most {1 - objective.target:.4g}, "
        raise InputError(message, field=f"{field}.sli", value="goodput", allowed=f"{bounds}goodput meets its target")
    if source is None or not source.metrics:
        reason = source.lacking if source else "no metric of it"
        message = f"is nothing that {engine.title} exposes: {reason}"
        raise InputError(message, field=f"{field}.sli", value=objective.sli.value, allowed=exposed(engine))
    metrics = metrics_of(engine, source, watch, f"{field}.sli")
    refuse_groups(metrics[0], watch, objective.sli.value)
    if metrics[0].type == "counter":
        return _counted(source, watch, metrics[0])
    return _on_an_edge(objective, metrics, source, watch, f"{field}.threshold")


def exposed(engine: Engine) -> str:
    """The SLIs that an engine exposes, as refusals list them."""
    return ", ".join(name for name, one in engine.slis.items() if one.metrics)


def metric_of(engine: Engine, source: SliSource, watch: Watch, field: str) -> Metric:
    """The metric that an SLI is read from in the engine's version. Raises InputError where that has none."""
    return metrics_of(engine, source, watch, field)[0]


def metrics_of(engine: Engine, source: SliSource, watch: Watch, field: str) -> tuple[Metric, ...]:
    """The same; where the version is not known all names that it may have, the newest first.

    Each instance counts by the first that it exposes: some versions expose an older name beside the new one.
    """
    candidates = tuple(engine.metric(name) for name in source.metrics)
    if watch.version is None:
        return candidates
    for metric in candidates:
        if metric.in_version(watch.version):
            return (metric,)
    spans = "; ".join(f"{one.name} since {one.since or 'ever'} until {one.until or 'now'}" for one in candidates)
    raise InputError(f"has no metric in {engine.title} {watch.version}", field=field, allowed=spans)


def labels_of_objective(objective: Objective, watch: Watch) -> set[str]:
    """Labels of the series that an objective counts on; none where the engine has no such metric."""
    source = watch.catalog.slis.get(objective.sli.value)  # type: ignore[call-overload]
    if source is None or not source.metrics:
        return set()
    return set(labels_of(metric_of(watch.catalog, source, watch, "sli"), watch))


def refuse_groups(metric: Metric, watch: Watch, sli: str) -> None:
    """Raises InputError where the metric of an SLI lacks a label that the file groups, matches or excludes by."""
    has = labels_of(metric, watch)
    for label in (*watch.group_by, *watch.match, *watch.exclude.labels):
        if label not in has:
            raise InputError(
                f"has no label {label}, which {sli} is to be grouped, matched or excluded by",
                field="watch",
                value=metric.name,
                allowed=f"{', '.join(sorted(has))}; or a file of its own for {sli}",
            )


def _as_written(promql: Promql, watch: Watch) -> Events:
    everything, bad = summed(watch.group_by, promql.all), summed(watch.group_by, promql.bad)
    note = "counts as the file's own PromQL has it; its metrics and labels were not checked, and of "
    note += "exclude only maintenance reaches it"
    # Only where there are events: `or vector(0)` of the file's own would count time in which nothing was exposed.
    bad = f"({bad}) and ({everything}) or ({everything}) * 0"
    return Events(everything, bad, "PromQL", (note,))


def _counted(source: SliSource, watch: Watch, metric: Metric) -> Events:
    failing = {one.metric for one in source.bad}

    def total(series: Sequence[Series]) -> str:
        return " + ".join(
            summed(
                watch.group_by,
                (rate_from_birth if one.metric in failing else engine_rate)(one.metric, watch, one.match),
            )
            for one in series
        )

    everything = total(source.events)
    if len(source.events) > 1:  # a counter that has not counted yet may be absent: it must not take the others away
        parts = [total([one]) for one in source.events]
        everything = f"({parts[0]} or {parts[1]} * 0) + ({parts[1]} or {parts[0]} * 0)"
    bad = f"({total(source.bad)}) or ({everything}) * 0"
    return Events(everything, bad, metric.name, _notes(metric, source))


def _on_an_edge(objective: Objective, metrics: Sequence[Metric], source: SliSource, watch: Watch, field: str) -> Events:
    assert objective.threshold is not None  # noqa: S101  the SLO file's own check
    metric = metrics[0]  # the others are older names of it
    threshold = in_unit(objective.threshold, metric)
    layouts = layouts_of(metric, watch)
    chosen = [edge_under(layout, threshold) for layout in layouts]
    if not any(edge is not None and is_edge(edge, threshold) for edge in chosen):
        raise _off_edge(metric, watch, layouts, threshold, field)
    edges = sorted({edge for edge in chosen if edge is not None}, reverse=True)

    # An instance whose buckets lack the threshold counts by its largest edge below: it may call a good event bad,
    # never a bad one good.
    buckets = [engine_rate(f"{one.name}_bucket", watch, {"le": le_pattern(edge)}) for one in metrics for edge in edges]
    good = summed(watch.group_by, " or ignoring (le) ".join(buckets))
    count = summed(watch.group_by, " or ".join(engine_rate(f"{one.name}_count", watch) for one in metrics))
    bad = f"clamp_min({count} - {good}, 0)"
    everything = count
    if (without := source.without) is not None and without.le is not None:
        short = engine_rate(f"{without.metric}_bucket", watch, {**without.match, "le": le_pattern(without.le)})
        everything = f"clamp_min({count} - {summed(watch.group_by, short)}, 0)"
    notes = _notes(metric, source)
    if len(edges) > 1:
        lower = ", ".join(f"{edge:g}" for edge in edges[1:])
        notes += (
            f"instances with older buckets count by {lower} {metric.unit}: some of their good events count as bad",
        )
    return Events(everything, bad, metric.name, notes)


def layouts_of(metric: Metric, watch: Watch) -> list[tuple[float, ...]]:
    """Bucket edges that an instance may have, the newest layout first, in the metric's unit."""
    engine = watch.catalog
    if metric.edges in watch.edges:
        return [watch.edges[metric.edges]]
    layouts = engine.edges.get(metric.edges or "", ())
    at = [one.values for one in layouts if watch.version is None or one.in_version(watch.version)]
    return list(reversed(at))


def edge_under(layout: Sequence[float], threshold: float) -> float | None:
    """The largest edge at or under the threshold."""
    at = bisect_left(layout, threshold * (1 + _TOLERANCE))
    return layout[at - 1] if at else None


def _off_edge(
    metric: Metric, watch: Watch, layouts: Sequence[Sequence[float]], threshold: float, field: str
) -> InputError:
    """What is wrong, the two nearest edges, and how the engine is given the edge that is missing."""
    engine, unit = watch.catalog, metric.unit
    if not layouts:
        return InputError(f"cannot be checked: the edges of {metric.name} depend on the server", field=field)
    newest = layouts[0]
    below = [edge for edge in newest if edge < threshold]
    above = [edge for edge in newest if edge > threshold]
    seconds = [format_seconds(edge / _PER_SECOND[unit]) for edge in (*below[-1:], *above[:1])]
    where = "beyond the last bucket edge" if not above else "between two bucket edges"
    knows = (
        f"the share within it would only be known to lie between that of {seconds[0]} and that of {seconds[1]}"
        if below and above
        else "the share within it could not be known"
    )
    flag = engine.edge_flags.get(metric.edges or "")
    mend = ""
    if flag and (watch.version is None or flag.in_version(watch.version)):
        values = sorted({*newest, threshold})
        listed = ", ".join(f"{edge:.15g}" for edge in values)
        value = (
            f"'{{\"{flag.key}\": [{listed}]}}'" if flag.flag.startswith("--") and flag.key else listed.replace(",", "")
        )
        mend = (
            f"; or start {engine.title} with {flag.flag} {value} and give the same list as watch.edges.{metric.edges}"
        )
    message = f"{where} of {metric.name}: {knows}"
    return InputError(
        message, field=field, value=_told(threshold / _PER_SECOND[unit], seconds), allowed=" or ".join(seconds) + mend
    )


def _told(threshold_s: float, edges: Sequence[str]) -> str:
    """A threshold for people; in full where it would read like the edge that it is not."""
    short = format_seconds(threshold_s)
    return f"{threshold_s:.15g} s" if short in edges else short


def _notes(metric: Metric, source: SliSource) -> tuple[str, ...]:
    return tuple(text for text in (metric.trap, source.note) if text)
