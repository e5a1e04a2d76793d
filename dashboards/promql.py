"""Queries about one engine, by the names, labels and units that the engine catalog has of it.

A `Term` names series; a metric that was renamed has its older names after the newer, and engines of both versions are
seen. A name that the catalog has not raises InputError when the board is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cliffwatch.engines.catalog import Engine
from cliffwatch.slo.prometheus.promql import quoted, summed

STEP = "$__rate_interval"  # at least four scrapes, whatever the zoom
SHOWN = "$__range"
QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Term:
    """Some series: metric names (the first that is there), label matches, labels to tell apart, factor to the unit.

    `part` is the end of a histogram's series (`_sum`, `_count`, `_bucket`); names are those of the catalog.
    """

    names: tuple[str, ...]
    match: Mapping[str, str] = field(default_factory=dict)
    by: tuple[str, ...] = ()
    scale: float = 1
    part: str = ""


def term(*names: str, match: Mapping[str, str] | None = None, by: str = "", scale: float = 1) -> Term:
    """A Term as a row of a table writes it; `match` has regular expressions."""
    return Term(names, match or {}, (by,) if by else (), scale)


@dataclass(frozen=True)
class Ratio:
    """A mean or a share: two counters whose rates are divided, the first scaled."""

    part: Term
    whole: Term


class EngineQueries:
    """PromQL over one engine's metrics, narrowed by the board's variables `model` (where it has one) and `instance`.

    `seen` is a gauge that is there whenever the engine is scraped: it tells a count of 0 from one that is not known.
    """

    def __init__(self, engine: Engine, seen: Term) -> None:
        self.engine = engine
        self._seen = seen
        self.model_label = engine.labels.get("model")
        chosen = {self.model_label: "$model"} if self.model_label else {}
        self._chosen = {**chosen, "instance": "$instance"}

    def legend(self, text: str, of: Term | None = None) -> str:
        """A series' name: what it is, the labels that tell it apart, the model."""
        labels = [*(of.by if of else ()), *([self.model_label] if self.model_label else [])]
        return " ".join([*([text] if text else []), *(f"{{{{{label}}}}}" for label in labels)])

    def value(self, of: Term, how: str = "sum") -> str:
        """A gauge, aggregated by `how` over what is not told apart."""
        return f"{how}{self._by(of)} ({self._either(of)}){_scaled(of)}"

    def rate(self, of: Term, window: str = STEP) -> str:
        """A counter's rise in a second."""
        return f"sum{self._by(of)} ({self._either(of, 'rate', window)}){_scaled(of)}"

    def events(self, of: Term) -> str:
        """The rate of a counter that some engines show only from its first event on: until then 0."""
        return f"{self.rate(of)} or on ({self.model_label or ''}) 0 * {self.value(self._seen)}"

    def total(self, of: Term) -> str:
        """A counter's rise over the time shown, of all models together; 0 where its first event has not been."""
        return f"sum({self._either(of, 'increase', SHOWN)}){_scaled(of)} or 0 * sum({self._either(self._seen)})"

    def mean(self, histogram: Term, window: str = STEP) -> str:
        """A histogram's mean: its sum over its count, never one of them alone."""
        return self.ratio(Ratio(replace(histogram, part="_sum"), count_of(histogram)), window)

    def ratio(self, of: Ratio, window: str = STEP) -> str:
        """Rate over rate; nothing, not NaN, where nothing happened."""
        return f"{self.rate(of.part, window)} / ({self.rate(of.whole, window)} > 0)"

    def quantile(self, share: float, histogram: Term) -> str:
        """A percentile, interpolated inside a bucket."""
        inner = self._either(replace(histogram, part="_bucket"), "rate", STEP)
        return f"histogram_quantile({share:g}, {summed((*self._kept(histogram), 'le'), inner)}){_scaled(histogram)}"

    def buckets(self, histogram: Term) -> str:
        """Events in each bucket, for a heatmap."""
        return summed(("le",), self._either(replace(histogram, part="_bucket"), "increase", STEP))

    def _kept(self, of: Term) -> Sequence[str]:
        return (*([self.model_label] if self.model_label else ()), *of.by)

    def _by(self, of: Term) -> str:
        kept = self._kept(of)
        return f" by ({', '.join(kept)})" if kept else ""

    def _either(self, of: Term, function: str = "", window: str = "") -> str:
        return " or ".join(self._one(of, name, function, window) for name in of.names)

    def _one(self, of: Term, name: str, function: str, window: str) -> str:
        labels = {"instance": "$instance"} if self.engine.metric(name).own_labels else self._chosen
        matches = ",".join(f"{label}=~{quoted(value)}" for label, value in {**labels, **of.match}.items())
        series = f"{name}{of.part}{{{matches}}}"
        return f"{function}({series}[{window}])" if function else series


def count_of(histogram: Term) -> Term:
    """The counter of a histogram's events."""
    return replace(histogram, part="_count", scale=1)


def _scaled(of: Term) -> str:
    return "" if of.scale == 1 else f" * {of.scale:g}"
