"""Percentiles that a judgement shows, by the rule of docs/timing.md for how many samples they need."""

from __future__ import annotations

from collections.abc import Sequence

from cliffwatch.slo.judgement import Quantile
from cliffwatch.stats.percentile import sample_needs

PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def quantiles(values: Sequence[float] | None, n: int) -> dict[str, Quantile]:
    """Name to percentile, from DuckDB's `quantile_cont` at the levels of `PERCENTILES` (null without rows)."""
    raw: Sequence[float | None] = values if values is not None else [None] * len(PERCENTILES)
    return {name: quantile(value, n, level) for (name, level), value in zip(PERCENTILES.items(), raw, strict=True)}


def quantile(value: float | None, n: int, level: float) -> Quantile:
    """Percentile `level` of `n` samples: not shown, or marked, where these are too few."""
    needs = sample_needs(level)
    return Quantile(value=value if n >= needs.shown else None, n=n, few=n < needs.sure)
