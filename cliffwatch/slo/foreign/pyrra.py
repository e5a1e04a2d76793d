"""Pyrra's ServiceLevelObjective: a ratio of two counters, or a histogram's bucket of its count."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.config import check_config
from cliffwatch.slo.burn import DAY_S
from cliffwatch.slo.exclude import Label
from cliffwatch.slo.foreign.document import (
    ForeignFile,
    ForeignModel,
    Percent,
    Pledge,
    is_selector,
    not_kept,
    refuse_keys,
)
from cliffwatch.slo.prometheus.promql import summed
from cliffwatch.slo.slices import WINDOW, Name

_WINDOW = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?")
_LE = re.compile(r'\ble\s*=\s*"[^"]*"')
_REFUSED = {
    "latencyNative": "native histograms are not counted on; allowed: latency, of a bucket",
    "bool_gauge": "samples of a gauge are no events; allowed: ratio, of two counters",
}


def _selected(text: str) -> str:
    if not is_selector(text):
        raise ValueError('must be one metric with its labels, such as requests_total{code="500"}')
    return text.strip()


def _period_s(text: str) -> int:
    match = _WINDOW.fullmatch(text)
    days = 0 if match is None else int(match[1] or 0) * 7 + int(match[2] or 0)
    if not 1 <= days <= 90:
        raise ValueError("must be whole days or weeks, 1d to 90d")
    return days * DAY_S


Selector = Annotated[str, AfterValidator(_selected)]


class _Metric(ForeignModel):
    metric: Selector


class _Ratio(ForeignModel):
    errors: _Metric
    total: _Metric
    grouping: tuple[Label, ...] = ()


class _Latency(ForeignModel):
    success: _Metric
    total: _Metric
    grouping: tuple[Label, ...] = ()

    @model_validator(mode="after")
    def _of_a_bucket(self) -> _Latency:
        if not _LE.search(self.success.metric):
            raise ValueError('success names no bucket; allowed: a metric with le="..."')
        return self


class _Indicator(ForeignModel):
    ratio: _Ratio | None = None
    latency: _Latency | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_events(cls, data: Any) -> Any:
        return refuse_keys(data, _REFUSED)

    @model_validator(mode="after")
    def _one(self) -> _Indicator:
        if (self.ratio is None) == (self.latency is None):
            raise ValueError("needs ratio or latency, and not both")
        return self


class _Metadata(ForeignModel):
    name: Name


class _Spec(ForeignModel):
    target: Percent
    window: Annotated[str, Field(max_length=20)]
    description: str = ""
    indicator: _Indicator

    @model_validator(mode="after")
    def _has_a_period(self) -> _Spec:
        _period_s(self.window)
        return self


class _Object(ForeignModel):
    apiVersion: Literal["pyrra.dev/v1alpha1"]  # noqa: N815  as Kubernetes has it
    kind: Literal["ServiceLevelObjective"]
    metadata: _Metadata
    spec: _Spec


def is_pyrra(document: dict[str, Any]) -> bool:
    """Whether a document says that it is Pyrra's."""
    return document.get("kind") == "ServiceLevelObjective"


def read_pyrra(document: dict[str, Any], *, source: str) -> ForeignFile:
    """One document. Raises InputError."""
    model = check_config(document, _Object, source=source)
    spec, name = model.spec, model.metadata.name
    indicator = spec.indicator.ratio or spec.indicator.latency
    assert indicator is not None  # noqa: S101  checked when it was read
    by = tuple(dict.fromkeys(indicator.grouping))

    def rate(metric: _Metric) -> str:
        return summed(by, f"rate({metric.metric}[{WINDOW}])")

    total = rate(indicator.total)
    bad = rate(indicator.errors) if isinstance(indicator, _Ratio) else f"{total} - {rate(indicator.success)}"
    lost = tuple(f"not kept: {key}" for key in not_kept(model))
    return ForeignFile(
        name, (Pledge(name, spec.target, total, bad),), spec.description, {"period": _period_s(spec.window)}, by, lost
    )
