"""An engine's series as the SLO file wants them: matched, and without what it excludes."""

from __future__ import annotations

from collections.abc import Mapping

from cliffwatch.engines.catalog import Metric
from cliffwatch.slo.prometheus.promql import exact, selector
from cliffwatch.slo.watch import TARGET_LABELS, Watch


def labels_of(metric: Metric, watch: Watch) -> set[str]:
    """Labels that a metric's series have."""
    own = () if metric.own_labels else tuple(watch.catalog.labels.values())
    return {*own, *metric.labels, *TARGET_LABELS, *watch.target_labels}


def engine_range(metric: str, watch: Watch, patterns: Mapping[str, str] | None = None) -> str:
    """Some series of an engine over `{window}`."""
    left_out = {label: "|".join(map(exact, values)) for label, values in watch.exclude.labels.items()}
    return f"{selector(metric, watch.match, patterns, left_out)}[{{window}}]"


def engine_rate(metric: str, watch: Watch, patterns: Mapping[str, str] | None = None) -> str:
    """The rate of some series of an engine over `{window}`, those of engines that sleep left out."""
    return _awake(f"rate({engine_range(metric, watch, patterns)})", watch)


def rate_from_birth(metric: str, watch: Watch, patterns: Mapping[str, str] | None = None) -> str:
    """The same, of counters that appear with their first event.

    `rate` knows no beginning: what a series had counted when it was first seen would be lost. It counts where the
    target was scraped a `{window}` (`{seconds}` long) before: on a target that is new itself it may be of any time.
    """
    ranged = engine_range(metric, watch, patterns)
    before = f"{ranged.removesuffix('[{window}]')} offset {{window}}"
    target = ", ".join(TARGET_LABELS)
    born = f"(min_over_time({ranged}) unless {before}) / {{seconds}} and on ({target}) up offset {{window}}"
    apart = f'label_replace({_awake(born, watch)}, "born", "true", "", "")'  # beside the rate of the same series
    return f"{engine_rate(metric, watch, patterns)} or {apart}"


def _awake(rate: str, watch: Watch) -> str:
    asleep = _asleep(watch)
    return f"({rate} unless on ({', '.join(TARGET_LABELS)}) {asleep})" if asleep else rate


def _asleep(watch: Watch) -> str | None:
    """Engines that sleep, where the file excludes them: those whose state says that they are not awake."""
    awake = watch.catalog.awake
    if not watch.exclude.sleeping or awake is None:
        return None
    has = labels_of(watch.catalog.metric(awake.metric), watch)
    match = {label: value for label, value in watch.match.items() if label in has}
    return f"({selector(awake.metric, {**match, **awake.match})} == 0)"
