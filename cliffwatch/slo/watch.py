"""How an SLO is watched on Prometheus: which engine's metrics, which series of them, grouped how, over which period."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.config import ConfigModel
from cliffwatch.engines.catalog import Edges, Engine, engine, engine_names, version_key
from cliffwatch.units import Seconds, WholeNumber

DAY_S = 86_400
TARGET_LABELS = ("job", "instance")  # that Prometheus itself adds
RESERVED_LABELS = ("slo", "objective", "severity", "le", "quantile", "alertname")  # that the compiled rules use
SCRAPES_A_WINDOW = 4  # a rate needs two samples; half of the scrapes may be lost

Label = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=100)]
Value = Annotated[str, Field(max_length=500)]


def _known(name: str) -> str:
    if name not in engine_names():
        raise ValueError(f"is no engine of the catalog; allowed: {', '.join(engine_names())}")
    return name


def _a_period(seconds: float) -> float:
    if not DAY_S <= seconds <= 90 * DAY_S or seconds % DAY_S:
        raise ValueError("must be whole days, 1d to 90d")
    return seconds


def _a_scrape(seconds: float) -> float:
    if not 1 <= seconds <= 75:
        raise ValueError(
            f"leaves under {SCRAPES_A_WINDOW} scrapes in the shortest window of 5 minutes; allowed: 1s to 75s"
        )
    return seconds


class Watch(ConfigModel):
    """The part of an SLO file that Prometheus rules are made from.

    Attributes:
        version: the engine's; its bucket edges follow from it. Without it every layout of the catalog must agree.
        edges: bucket edges where the engine's were changed, by the catalog's key (`ttft`, `itl`, `latency`, ...).
        match: labels that the series must have, with their exact values.
        group_by: one budget for each value of these labels; none: one in all.
        target_labels: labels that the scrape configuration adds, beside job and instance.
        min_bad_events: an alert needs as many in its long window: one failure of five requests pages nobody.
    """

    engine: Annotated[str, AfterValidator(_known)]
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]*[0-9][0-9A-Za-z.+-]*$", max_length=50)] | None = None
    edges: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    match: dict[Label, Value] = Field(default_factory=dict)
    group_by: tuple[Label, ...] = ()
    target_labels: tuple[Label, ...] = ()
    period: Annotated[Seconds, AfterValidator(_a_period)] = 30 * DAY_S
    scrape_interval: Annotated[Seconds, AfterValidator(_a_scrape)] = 15.0
    min_bad_events: Annotated[WholeNumber, Field(ge=1, le=1_000_000)] = 5

    @model_validator(mode="after")
    def _fits_the_engine(self) -> Watch:
        catalog = self.catalog
        span = catalog.versions
        if self.version and span.since and version_key(self.version) < version_key(span.since):
            raise ValueError(f"version {self.version} is older than {span.since}, the first that is known")
        if unknown := set(self.edges) - set(catalog.edges):
            allowed = ", ".join(catalog.edges) or "none"
            raise ValueError(f"edges.{min(unknown)} is no layout of {catalog.title}; allowed: {allowed}")
        for values in self.edges.values():
            Edges(values=values)
        known = self.labels
        for label in (*self.group_by, *self.match):
            if label in RESERVED_LABELS:
                raise ValueError(
                    f"label {label} is one that the rules use; allowed: any but {', '.join(RESERVED_LABELS)}"
                )
            if label not in known:
                raise ValueError(
                    f"{catalog.title} has no label {label}; allowed: {', '.join(known)}, and those in target_labels"
                )
        if len(set(self.group_by)) < len(self.group_by):
            raise ValueError("group_by names a label twice")
        return self

    @property
    def catalog(self) -> Engine:
        return engine(self.engine)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that some series of this engine can have."""
        own = (label for metric in self.catalog.metrics for label in metric.labels)
        return tuple(dict.fromkeys([*self.catalog.labels.values(), *TARGET_LABELS, *self.target_labels, *own]))

    @property
    def period_text(self) -> str:
        return f"{round(self.period / DAY_S)}d"
