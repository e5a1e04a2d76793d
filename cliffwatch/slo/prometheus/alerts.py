"""The burn alert of one pair of windows, with what its reader needs to act."""

from __future__ import annotations

from cliffwatch.slo.burn import BurnAlert, WindowPair
from cliffwatch.slo.prometheus.annotations import for_burn
from cliffwatch.slo.prometheus.counts import count_name
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.prometheus.promql import window_text
from cliffwatch.slo.prometheus.record import Rule, recorded
from cliffwatch.slo.spec import SloFile
from cliffwatch.slo.watch import Watch
from cliffwatch.units import format_share


def alert_name(pair: WindowPair) -> str:
    """Such as `SloBurn1h`, by the long window."""
    return f"SloBurn{window_text(pair.long_s)}"


def least_bad(promise: Promise, watch: Watch) -> int:
    """Bad events that an alert needs in its long window; a bad slice stands for many events."""
    return watch.min_bad_events if promise.slices is None else 1


def burn_rule(slo: SloFile, watch: Watch, promise: Promise, labels: dict[str, str], alert: BurnAlert) -> Rule:
    """Fires while both windows burn and the long one holds enough bad events to mean something."""
    long, short = window_text(alert.pair.long_s), window_text(alert.pair.short_s)
    ratio = f"{alert.ratio.normalize():f}"
    conditions = [f"{recorded(f'bad:ratio{window}', labels)} > {ratio}" for window in (long, short)]
    conditions.append(f"{recorded(count_name(alert.pair.long_s), labels)} >= {least_bad(promise, watch)}")
    counted = "slices" if promise.slices else "events"
    groups = ", ".join(f"{label} {{{{ $labels.{label} }}}}" for label in watch.group_by)
    who = f"{slo.name}{f' ({groups})' if groups else ''}"
    return {
        "alert": alert_name(alert.pair),
        "expr": "\nand ".join(conditions),
        "labels": {"severity": alert.pair.severity.value, **labels},
        "annotations": {
            "summary": f"{who}: {promise.label} missed by {{{{ $value | humanizePercentage }}}} of the last {long}",
            "description": f"Promised to {format_share(promise.target)} of {counted} over {watch.period_text}; this "
            f"burns the error budget {alert.factor.normalize():.4g} times too fast or more.",
            **for_burn(watch, promise, labels, alert),
        },
    }
