"""Query parameters of the API, checked before any file is opened; an unknown one is refused, not ignored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from cliffwatch.records.figures import FIGURES
from cliffwatch.records.schema import Phase
from cliffwatch.roofline.hardware import Dtype, hardware_names
from cliffwatch.roofline.model import model_names
from cliffwatch.surface.bins import AUTO, FORMS
from cliffwatch.surface.cells import STATISTICS
from cliffwatch.surface.dimensions import DIMENSIONS
from cliffwatch.surface.drill import MAX_PAGE, ORDERS
from cliffwatch.surface.knees import AXES
from cliffwatch.surface.model import STATISTICS as SURFACE_STATISTICS
from cliffwatch.surface.use import PARTS

MAX_BINS = 500
MAX_RUNS = 1000
_ACRONYMS = frozenset({"ttft", "ttfa", "e2e", "itl", "tpot", "ntpot"})


def _one_of(names: Collection[str]) -> Any:
    """A text that must be one of `names`: in the OpenAPI as an enum, in a refusal as what is allowed."""

    def check(name: str) -> str:
        if name not in names:
            raise PydanticCustomError("one_of", "is not one of the allowed values", {"expected": ", ".join(names)})
        return name

    return (AfterValidator(check), Field(json_schema_extra={"enum": list(names)}))


def label(metric: str) -> str:
    """A metric's name for people, as the report has it: `ttft_user_s` is `TTFT`, `ttft_s` is `TTFT, service`."""
    words = metric.removesuffix("_s").removesuffix("_user").split("_")
    spoken = " ".join(word.upper() if word in _ACRONYMS else word for word in words)
    return f"{spoken}, service" if f"{metric.removesuffix('_s')}_user_s" in FIGURES else spoken


RunId = Annotated[str, Path(description="A run's id, as /v1/runs lists it.")]
Metric = Annotated[str, *_one_of(FIGURES)]
Latency = Annotated[str, *_one_of([name for name, figure in FIGURES.items() if figure.unit == "s"])]
Side = Annotated[str, *_one_of(DIMENSIONS)]
PhaseName = Annotated[str, *_one_of([phase.value for phase in Phase])]


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NoParameters(_Parameters):
    """For routes that take none."""


class ListParameters(_Parameters):
    limit: int = Field(200, ge=1, le=MAX_RUNS, description="At most this many runs, newest first.")


class PhaseParameters(_Parameters):
    phase: PhaseName = Field("measured", description="The part of the run.")


class MetricParameters(PhaseParameters):
    metric: Metric = Field("ttft_user_s", description="A figure of a request, as /v1/metrics lists them.")


class SideParameters(MetricParameters):
    """Two sides of a grid, or three."""

    rows: Side = Field("input_tokens", description="What the rows are of: a dimension of a request.")
    columns: Side = Field("batch", description="What the columns are of.")
    row_bins: str = Field(AUTO, max_length=40, description=f"How rows are binned: {FORMS}.")
    column_bins: str = Field(AUTO, max_length=40, description="How columns are binned, likewise.")


class HeatmapParameters(SideParameters):
    statistic: Annotated[str, *_one_of(STATISTICS)] = Field("p95", description="What each cell shows of the metric.")
    threshold: float | None = Field(
        None, allow_inf_nan=False, description="With statistic `attainment`, and only then: in the metric's unit."
    )


class FacetParameters(HeatmapParameters):
    facet: Side = Field("cache", description="One heatmap for each value (or bin) of this third dimension.")
    facet_bins: str = Field(AUTO, max_length=40, description="How it is binned, as rows are.")


class CellParameters(SideParameters):
    row: str = Field(max_length=200, description="The row, by its key in the heatmap.")
    column: str = Field(max_length=200, description="The column, by its key in the heatmap.")
    replica: str | None = Field(None, max_length=200, description="Only requests that this replica answered.")
    from_s: float | None = Field(None, allow_inf_nan=False, description="Only those due from then on, seconds in.")
    to_s: float | None = Field(None, allow_inf_nan=False, description="Only those due before then, seconds in.")
    order: Annotated[str, *_one_of(ORDERS)] = Field("slowest", description="What comes first.")
    offset: int = Field(0, ge=0, le=10**9, description="How many to pass over.")
    limit: int = Field(50, ge=1, le=MAX_PAGE, description="At most so many.")


class AtParameters(_Parameters):
    """A place on a surface, which is fitted to the measured phase."""

    metric: Latency = Field(
        "ttft_user_s", description="A latency of a request; of a batch, TTFT is its slowest prompt's."
    )
    input_tokens: int = Field(ge=1, le=10**9, description="Of a prompt.")
    batch: int = Field(1, ge=1, le=10**6, description="Prompts in the request.")
    cached: bool | None = Field(None, description="State of the prefix cache; needed where the run has both.")
    statistic: Annotated[str, *_one_of(SURFACE_STATISTICS)] = Field("p50", description="What is asked of the metric.")
    extrapolate: bool = Field(False, description="Answer outside what was measured too: marked, with a wider interval.")


class UseParameters(_Parameters):
    """A model on hardware, and a part of the requests' time. Of the measured phase."""

    hardware: Annotated[str, *_one_of(hardware_names())] = Field(description="What was measured.")
    model: Annotated[str, *_one_of(model_names())] = Field(description="The model that it served.")
    part: Annotated[str, *_one_of(PARTS)] = Field("decode", description="The part of the requests' time.")
    cached: bool | None = Field(None, description="State of the prefix cache; needed where the run has both.")
    weights: Dtype = Field("bf16", description="Format of the weights.")
    kv_cache_dtype: Dtype = Field("bf16", description="Format of the key-value cache.")
    tensor_parallel: int = Field(1, ge=1, le=64, description="Devices that share the model.")


class KneeParameters(_Parameters):
    """Curves along an axis, of the measured phase."""

    metric: Metric = Field("ttft_user_s", description="A figure of a request, as /v1/metrics lists them.")
    axis: Annotated[str, *_one_of([AUTO, *AXES])] = Field(
        AUTO, description="The dimension to look along; `auto` is the first that has enough points."
    )


class MoveParameters(KneeParameters):
    against: str = Field(max_length=200, description="The id of the run whose knees this run's are compared with.")


class TimelineParameters(MetricParameters):
    bins: int = Field(
        120, ge=1, le=MAX_BINS, description="At most so many (one more where ends do not fall on a bin's edge)."
    )


class HistoryParameters(_Parameters):
    span_s: float = Field(
        86_400.0,
        ge=600,
        le=90 * 86_400,
        allow_inf_nan=False,
        description="How far back, seconds: 10 minutes to 90 days.",
    )
    points: int = Field(120, ge=2, le=MAX_BINS, description="How many instants.")
