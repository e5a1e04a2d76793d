"""OpenSLO v1 as it is read: https://github.com/OpenSLO/OpenSLO."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from cliffwatch.slo.foreign.document import ForeignModel, Percent, Query, rate_of, some
from cliffwatch.slo.foreign.openslo_write import CALENDARS
from cliffwatch.slo.slices import Target, slice_length

_ROLLING = re.compile(r"([1-9]\d{0,4})([mhdw])", re.ASCII)
_UNITS_S = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_BEGINS = {  # what the first day of a calendar's period is like
    "1w": lambda day: day.weekday() == 0,
    "1M": lambda day: day.day == 1,
    "1Q": lambda day: day.day == 1 and day.month % 3 == 1,
}


def duration_s(text: object) -> int:
    """Seconds of OpenSLO's shorthand; a bare number is minutes. Raises ValueError."""
    written = f"{text}m" if isinstance(text, int) and not isinstance(text, bool) else text
    match = _ROLLING.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise ValueError("must be whole minutes, hours, days or weeks, such as 5m, 30d or 4w")
    return int(match[1]) * _UNITS_S[match[2]]


Duration = Annotated[int, BeforeValidator(duration_s)]


class Metadata(ForeignModel):
    """`displayName` and annotations hold what a name cannot."""

    name: str
    displayName: str | None = None  # noqa: N815
    annotations: dict[str, str] = Field(default_factory=dict)


class PromQuery(ForeignModel):
    """The query of a Prometheus source; a bare counter stands for its rate."""

    query: Annotated[Query, BeforeValidator(rate_of)]


class MetricSource(ForeignModel):
    """Only Prometheus is known."""

    type: Literal["Prometheus", "prometheus"] = "Prometheus"
    spec: PromQuery


class Metric(ForeignModel):
    """One side of a ratio."""

    metricSource: MetricSource  # noqa: N815


class Ratio(ForeignModel):
    """Good or bad events, of all."""

    counter: bool = True
    good: Metric | None = None
    bad: Metric | None = None
    total: Metric

    @model_validator(mode="before")
    @classmethod
    def _of_events(cls, data: Any) -> Any:
        if isinstance(data, dict) and "raw" in data:
            raise ValueError("raw cannot be taken: a ratio holds no count of events; allowed: good or bad, and total")
        return data

    @model_validator(mode="after")
    def _one_side(self) -> Ratio:
        if (self.good is None) == (self.bad is None):
            raise ValueError("needs good or bad, and not both")
        return self


class IndicatorSpec(ForeignModel):
    """A ratio: single values compared with a threshold are no events."""

    description: str | None = None
    ratioMetric: Ratio  # noqa: N815

    @model_validator(mode="before")
    @classmethod
    def _no_single_values(cls, data: Any) -> Any:
        if isinstance(data, dict) and "thresholdMetric" in data:
            raise ValueError("thresholdMetric cannot be taken: it counts no events; allowed: ratioMetric")
        return data


class Indicator(ForeignModel):
    """An SLI, of its own or within an SLO."""

    metadata: Metadata | None = None
    spec: IndicatorSpec


class CalendarStart(ForeignModel):
    """When the first period began."""

    startTime: Annotated[str, BeforeValidator(str)]  # noqa: N815
    timeZone: Literal["UTC", "Etc/UTC"] = "UTC"  # noqa: N815


class TimeWindow(ForeignModel):
    """The budget's period."""

    duration: str
    isRolling: bool | None = None  # noqa: N815
    calendar: CalendarStart | None = None

    @model_validator(mode="after")
    def _known(self) -> TimeWindow:
        if self.calendar is None:
            if self.isRolling is False:
                raise ValueError("needs a calendar where it is not rolling")
            duration_s(self.duration)
            return self
        if self.isRolling or self.duration not in CALENDARS.values():
            raise ValueError(f"is of no calendar that is known; allowed: {', '.join(CALENDARS.values())}, not rolling")
        start = datetime.fromisoformat(self.calendar.startTime)
        if (start.hour, start.minute, start.second) != (0, 0, 0) or not _BEGINS[self.duration](start):
            raise ValueError("does not start with its week (Monday), month or quarter, at midnight")
        return self

    @property
    def period(self) -> dict[str, Any]:
        """As a `watch` has it."""
        if self.calendar is None:
            return {"period": duration_s(self.duration)}
        return {"calendar": next(name.value for name, text in CALENDARS.items() if text == self.duration)}


class Threshold(ForeignModel):
    """One target."""

    displayName: str | None = None  # noqa: N815
    target: Target | None = None
    targetPercent: Percent | None = None  # noqa: N815
    timeSliceTarget: Annotated[float, Field(gt=0, le=1)] | None = None  # noqa: N815
    timeSliceWindow: Annotated[Duration, AfterValidator(slice_length)] | None = None  # noqa: N815

    @model_validator(mode="after")
    def _one_target(self) -> Threshold:
        if (self.target is None) == (self.targetPercent is None):
            raise ValueError("needs target or targetPercent, and not both")
        return self

    @property
    def share(self) -> float:
        """The target, however it was written."""
        return self.target or self.targetPercent or 0.0


class SloSpec(ForeignModel):
    """What is promised."""

    description: str | None = None
    service: str
    indicator: dict[str, Any] | None = None
    indicatorRef: str | None = None  # noqa: N815
    timeWindow: Annotated[tuple[TimeWindow, ...], Field(max_length=1)] = ()  # noqa: N815
    budgetingMethod: Literal["Occurrences", "Timeslices"]  # noqa: N815
    objectives: Annotated[tuple[Threshold, ...], AfterValidator(some)]

    @model_validator(mode="after")
    def _fits(self) -> SloSpec:
        if (self.indicator is None) == (self.indicatorRef is None):
            raise ValueError("needs indicator or indicatorRef, and not both")
        for one in self.objectives:
            both = one.timeSliceTarget is not None and one.timeSliceWindow is not None
            if both != (self.budgetingMethod == "Timeslices"):
                raise ValueError(
                    "timeSliceTarget and timeSliceWindow go with budgetingMethod Timeslices, and only there"
                )
        return self


class Slo(ForeignModel):
    """A document of kind SLO."""

    apiVersion: Literal["openslo/v1"]  # noqa: N815
    kind: Literal["SLO"]
    metadata: Metadata
    spec: SloSpec


class ServiceSpec(ForeignModel):
    """What is known of a service."""

    description: str = ""


class Service(ForeignModel):
    """A document of kind Service."""

    apiVersion: Literal["openslo/v1"]  # noqa: N815
    kind: Literal["Service"]
    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()
