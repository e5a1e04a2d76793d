"""An engine's own counters and histograms, read from its `/metrics`, as differences between two moments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tests.servers.processes import get_text

Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(url: str) -> Series:
    """Every sample of `url/metrics`."""
    families = text_string_to_metric_families(get_text(f"{url}/metrics"))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


@dataclass(frozen=True)
class Growth:
    """What was counted between two scrapes."""

    before: Series
    after: Series

    def total(self, name: str, **labels: str) -> int:
        """Growth of a counter, over all its series that carry `labels`. Raises AssertionError for an unknown name."""
        found = [key for key in self.after if key[0] == name and set(labels.items()) <= key[1]]
        assert found, f"{name} is not exposed"
        return round(sum(self.after[key] - self.before.get(key, 0.0) for key in found))

    def mean(self, histogram: str) -> float:
        """Mean of what a histogram observed: its sum's growth over its count's."""
        keys = [key for key in self.after if key[0] == f"{histogram}_sum"]
        return sum(self.after[key] - self.before.get(key, 0.0) for key in keys) / self.total(f"{histogram}_count")

    def cumulative(self, histogram: str) -> list[tuple[float, int]]:
        """(upper edge, events at or under it) of a histogram, edges ascending."""
        edges = {dict(key[1])["le"] for key in self.after if key[0] == f"{histogram}_bucket"}
        return sorted((float(edge), self.total(f"{histogram}_bucket", le=edge)) for edge in edges)

    def percentile_bucket(self, histogram: str, share: float) -> tuple[float, float]:
        """The bucket widened by one to each side that the percentile lies in, as (low, high) edges."""
        cumulative = self.cumulative(histogram)
        edges = [0.0, *(edge for edge, _ in cumulative), math.inf]
        rank = math.ceil(share * cumulative[-1][1])
        index = next(place for place, (_, events) in enumerate(cumulative) if events >= rank)
        return edges[max(0, index - 1)], edges[index + 2]
