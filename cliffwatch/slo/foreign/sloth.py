"""Sloth's SLO files: `version: prometheus/v1`, and the PrometheusServiceLevel of Kubernetes with its other spelling."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from cliffwatch.config import check_config
from cliffwatch.slo.foreign.document import (
    ForeignFile,
    ForeignModel,
    Percent,
    Pledge,
    Query,
    not_kept,
    refuse_keys,
    some,
)
from cliffwatch.slo.slices import Name

_EVENTS = "allowed: events with error_query and total_query"
_REFUSED = {
    "raw": f"a ratio holds no count of events; {_EVENTS}",
    "plugin": f"its query is made by Sloth alone; {_EVENTS}",
}


def _spelt(snake: str, camel: str) -> Any:
    return Field(validation_alias=AliasChoices(snake, camel))


class _Events(ForeignModel):
    error_query: Annotated[Query, _spelt("error_query", "errorQuery")]
    total_query: Annotated[Query, _spelt("total_query", "totalQuery")]


class _Sli(ForeignModel):
    events: _Events

    @model_validator(mode="before")
    @classmethod
    def _counts_events(cls, data: Any) -> Any:
        return refuse_keys(data, _REFUSED)


class _Slo(ForeignModel):
    name: Name
    objective: Percent
    sli: _Sli


class _Spec(ForeignModel):
    version: Literal["prometheus/v1"] = "prometheus/v1"
    service: str
    slos: Annotated[tuple[_Slo, ...], AfterValidator(some)]


class _Object(ForeignModel):
    apiVersion: Literal["sloth.slok.dev/v1"]  # noqa: N815  as Kubernetes has it
    kind: Literal["PrometheusServiceLevel"]
    spec: _Spec


def is_sloth(document: dict[str, Any]) -> bool:
    """Whether a document says that it is Sloth's."""
    return document.get("version") == "prometheus/v1" or document.get("kind") == "PrometheusServiceLevel"


def read_sloth(document: dict[str, Any], *, source: str) -> ForeignFile:
    """One document. Raises InputError."""
    model: _Object | _Spec
    if "kind" in document:
        model = check_config(document, _Object, source=source)
        spec = model.spec
    else:
        model = spec = check_config(document, _Spec, source=source)
    pledges = tuple(
        Pledge(one.name, one.objective, one.sli.events.total_query, one.sli.events.error_query) for one in spec.slos
    )
    lost = tuple(f"not kept: {key}" for key in not_kept(model))
    return ForeignFile(spec.service, pledges, notes=lost)
