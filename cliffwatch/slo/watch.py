"""How an SLO is watched on Prometheus: which engine's metrics, which series of them, grouped how, over which period."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.config import ConfigModel
from cliffwatch.engines.catalog import Edges, Engine, engine, engine_names, version_key
from cliffwatch.slo.burn import DAY_S
from cliffwatch.slo.composite import Composite
from cliffwatch.slo.exclude import Exclude, Label
from cliffwatch.units import Seconds, WholeNumber

TARGET_LABELS = ("job", "instance")  # that Prometheus itself adds
RESERVED_LABELS = (
    "slo",
    "objective",
    "severity",
    "le",
    "quantile",
    "alertname",
    "calendar",
)  # that the compiled rules use
SCRAPES_A_WINDOW = 4  # a rate needs two samples; half of the scrapes may be lost

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


class Calendar(StrEnum):
    """A period of the calendar, in UTC; weeks begin on Monday."""

    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"


# The days that burn rates take a calendar's period for, and the most that it can have.
_USUAL_DAYS = {Calendar.WEEK: 7, Calendar.MONTH: 30, Calendar.QUARTER: 90}
_MOST_DAYS = {Calendar.WEEK: 7, Calendar.MONTH: 31, Calendar.QUARTER: 92}


def _a_url(text: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9][^\s@{}\"'`<>]*", text):
        raise ValueError("must be a URL such as https://wiki.example/runbooks, without a user and without braces")
    return text


RunbookUrl = Annotated[str, Field(max_length=500), AfterValidator(_a_url)]


def labels_known(engine: Engine, target_labels: Sequence[str] = ()) -> tuple[str, ...]:
    """Labels that some series of an engine can have, with those that its targets add."""
    own = (label for metric in engine.metrics for label in metric.labels)
    return tuple(dict.fromkeys([*engine.labels.values(), *TARGET_LABELS, *target_labels, *own]))


class Watch(ConfigModel):
    """The part of an SLO file that Prometheus rules are made from.

    Attributes:
        version: the engine's; its bucket edges follow from it. Without it every layout of the catalog must agree.
        edges: bucket edges where the engine's were changed, by the catalog's key (`ttft`, `itl`, `latency`, ...).
        match: labels that the series must have, with their exact values.
        group_by: one budget for each value of these labels; none: one in all.
        target_labels: labels that the scrape configuration adds, beside job and instance.
        calendar: the budget is of the calendar's month, week or quarter (UTC) instead of the last `period`.
        composites: budgets of several objectives of the file.
        exclude: what no budget is charged for.
        max_groups: most values of `group_by` that the rules may record; more would be an unbounded label.
        runbooks: a URL; an alert's own page is beneath it, by the alert's name.
        min_bad_events: an alert needs as many in its long window: one failure of five requests pages nobody.
    """

    engine: Annotated[str, AfterValidator(_known)]
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]*[0-9][0-9A-Za-z.+-]*$", max_length=50)] | None = None
    edges: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    match: dict[Label, Value] = Field(default_factory=dict)
    group_by: tuple[Label, ...] = ()
    target_labels: tuple[Label, ...] = ()
    period: Annotated[Seconds, AfterValidator(_a_period)] = 30 * DAY_S
    calendar: Calendar | None = None
    composites: Annotated[tuple[Composite, ...], Field(max_length=20)] = ()
    exclude: Exclude = Exclude()
    max_groups: Annotated[WholeNumber, Field(ge=1, le=100_000)] = 500
    scrape_interval: Annotated[Seconds, AfterValidator(_a_scrape)] = 15.0
    runbooks: RunbookUrl | None = None
    min_bad_events: Annotated[WholeNumber, Field(ge=1, le=1_000_000)] = 5

    @model_validator(mode="before")
    @classmethod
    def _calendars_have_their_period(cls, data: Any) -> Any:
        named = data.get("calendar") if isinstance(data, dict) else None
        if not isinstance(named, str) or named not in set(Calendar):
            return data
        usual = _USUAL_DAYS[Calendar(named)]
        if data.get("period", usual * DAY_S) != usual * DAY_S:
            raise ValueError("calendar and period are two lengths of the budget; allowed: one of them")
        return {**data, "period": usual * DAY_S}

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
        if self.exclude.sleeping:
            self._refuse_sleeping()
        for label in (*self.group_by, *self.match, *self.exclude.labels):
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

    def _refuse_sleeping(self) -> None:
        awake = self.catalog.awake
        if awake is None:
            raise ValueError(f"exclude.sleeping: {self.catalog.title} does not tell whether it sleeps; leave it out")
        metric = self.catalog.metric(awake.metric)
        if self.version is not None and not metric.in_version(self.version):
            raise ValueError(f"exclude.sleeping: {metric.name} is there since {metric.since}, not in {self.version}")

    @property
    def catalog(self) -> Engine:
        return engine(self.engine)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that some series of this engine can have."""
        return labels_known(self.catalog, self.target_labels)

    @property
    def period_text(self) -> str:
        """Such as `30d`, or `month`: part of the names of records."""
        return self.range_text if self.calendar is None else self.calendar.value

    @property
    def range_text(self) -> str:
        """As a range of PromQL, such as `30d`: at least the whole period."""
        days = round(self.period / DAY_S) if self.calendar is None else _MOST_DAYS[self.calendar]
        return f"{days}d"
