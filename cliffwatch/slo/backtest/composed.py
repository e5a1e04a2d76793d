"""A weighted composite over the past: its parts' histories as one, as the compiled records have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cliffwatch.slo.backtest.history import Floats, Grid, History, Indexes, What
from cliffwatch.slo.live.queries import Group
from cliffwatch.slo.prometheus.alerts import least_bad
from cliffwatch.slo.prometheus.promise import Promise
from cliffwatch.slo.watch import Watch


@dataclass(frozen=True, slots=True)
class Composition:
    """A composite with a target of its own; `parts` are the labels `objective` of its objectives."""

    id: str
    promise: Promise
    watch: Watch
    parts: tuple[str, ...]
    weights: tuple[float, ...]
    notes: tuple[str, ...] = ()

    @property
    def min_bad_events(self) -> int:
        """That an alert needs in its long window, of all parts together."""
        return least_bad(self.promise, self.watch)

    def histories(self, of: Mapping[str, Mapping[Group, History]]) -> dict[Group, Composed]:
        """By group, of the parts that have it."""
        groups = sorted({group for part in self.parts for group in of.get(part, {})})
        return {group: self._composed(group, of) for group in groups}

    def _composed(self, group: Group, of: Mapping[str, Mapping[Group, History]]) -> Composed:
        weighed = zip(self.parts, self.weights, strict=True)
        return Composed(tuple((of[part][group], weight) for part, weight in weighed if group in of.get(part, {})))


@dataclass(frozen=True, slots=True)
class Composed:
    """One group's parts with their weights: ratios are weighted means of those that are known, counts are sums."""

    parts: tuple[tuple[History, float], ...]

    @property
    def grid(self) -> Grid:
        return self.parts[0][0].grid

    @property
    def first_known(self) -> int | None:
        known = [at for history, _ in self.parts if (at := history.first_known) is not None]
        return min(known, default=None)

    def rate(self, what: What, window_s: int) -> Floats:
        """Events a second of all parts over a window."""
        return _sum(history.rate(what, window_s) for history, _ in self.parts)

    def count(self, what: What, begins: Indexes) -> Floats:
        """Events of all parts from an instant up to each."""
        return _sum(history.count(what, begins) for history, _ in self.parts)

    def bad_events(self, window_s: int) -> Floats:
        """Bad events of all parts in an alert's long window."""
        return _sum(history.bad_events(window_s) for history, _ in self.parts)

    def ratio(self, window_s: int) -> Floats:
        """The weighted mean of the parts' shares of bad events in a window."""
        return self._mean(history.ratio(window_s) for history, _ in self.parts)

    def ratio_since(self, begins: Indexes) -> Floats:
        """The same from an instant up to each."""
        return self._mean(history.ratio_since(begins) for history, _ in self.parts)

    def _mean(self, ratios: Iterable[Floats]) -> Floats:
        values = np.stack(list(ratios))
        weights = np.where(np.isnan(values), 0.0, np.array([[weight] for _, weight in self.parts]))
        whole = weights.sum(axis=0)
        with np.errstate(invalid="ignore"):
            mean: Floats = np.where(whole > 0, (np.nan_to_num(values) * weights).sum(axis=0) / whole, np.nan)
        return mean


def _sum(values: Iterable[Floats]) -> Floats:
    """Of what is known; NaN where nothing is."""
    each = np.stack(list(values))
    total: Floats = np.where(np.isnan(each).all(axis=0), np.nan, np.nansum(each, axis=0))
    return total
