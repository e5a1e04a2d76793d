"""`cliffwatch_slo_*`: the SLOs that are watched, for Prometheus. What is not known has no sample."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cliffwatch.slo.live.document import GroupDocument
from cliffwatch.slo.live.status import State
from cliffwatch.slo.prometheus.promql import window_text
from services.slo.live_views import current
from services.slo.watcher import Seen

_LABELS = ["slo", "objective", "group"]
# name: help
_FIGURES = {
    "attainment_ratio": "Share of good events over the period.",
    "budget_left_ratio": "Share of the period's error budget that is left; negative when overspent.",
    "events": "Events over the period, behind the attainment.",
    "budget_lasts_seconds": "Until the budget is gone at the burn of the last hour; no sample where it never is.",
}


class SloCollector(Collector):
    """One reading as Prometheus families; an old reading shows its states and no figures."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        fresh = self._seen.problem is None
        up = GaugeMetricFamily("cliffwatch_slo_prometheus_up", "1 where Prometheus answered for this scrape.")
        up.add_metric([], int(fresh))
        yield up
        yield self._states()
        if not fresh:
            return
        yield from self._figures()
        yield self._burns()
        yield self._limits()

    def _figures(self) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"cliffwatch_slo_{name}", text, labels=_LABELS) for name, text in _FIGURES.items()
        }
        for labels, group in self._groups():
            lasts_s = group.forecast.after_s if group.forecast else None
            values = (group.attainment, group.budget_left, group.events, lasts_s)
            for family, value in zip(families.values(), values, strict=True):
                if value is not None:
                    family.add_metric(labels, value)
        yield from families.values()

    def _burns(self) -> Metric:
        family = GaugeMetricFamily(
            "cliffwatch_slo_burn_rate", "How many times too fast the budget goes.", labels=[*_LABELS, "window"]
        )
        for labels, group in self._groups():
            windows = {one.window_s: one.burn_rate for burn in group.burns for one in (burn.short, burn.long)}
            for window_s, rate in sorted(windows.items()):
                if rate is not None:
                    family.add_metric([*labels, window_text(window_s)], rate)
        return family

    def _limits(self) -> Metric:
        family = GaugeMetricFamily(
            "cliffwatch_slo_burn_limit",
            "The burn rate above which both windows of an alert must be for it to fire.",
            labels=[*_LABELS, "alert", "severity"],
        )
        for labels, group in self._groups():
            for burn in group.burns:
                family.add_metric([*labels, burn.alert, burn.severity.value], burn.limit)
        return family

    def _states(self) -> Metric:
        family = GaugeMetricFamily(
            "cliffwatch_slo_state", "1 for the state that an objective is in.", labels=[*_LABELS, "state"]
        )
        for labels, group in self._groups():
            for state in State:
                family.add_metric([*labels, state.value], int(group.state is state))
        return family

    def _groups(self) -> Iterator[tuple[list[str], GroupDocument]]:
        for slo in current(self._seen).slos:
            for one in slo.objectives:
                for group in one.groups:
                    text = ",".join(f"{label}={value}" for label, value in group.labels.items())
                    yield [slo.name, one.objective, text], group
