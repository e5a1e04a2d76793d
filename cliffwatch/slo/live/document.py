"""A reading as frozen documents for JSON: what `slo status --json` prints and the service answers. Null is unknown."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from cliffwatch.slo.live.asks import PrometheusAlert
from cliffwatch.slo.live.read import ObjectiveStatus, Reading, SloStatus
from cliffwatch.slo.live.status import Burn, Forecast, GroupStatus, State


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class GroupDocument(_Document):
    """An objective in one group of `watch.group_by`."""

    labels: dict[str, str] = Field(description="The group; empty where there is one budget in all.")
    state: State
    attainment: float | None = Field(description="Share of good events over the period; null: not known.")
    low: float | None = Field(description="Lower end of its Wilson 95 % interval.")
    high: float | None = Field(description="Upper end of its Wilson 95 % interval.")
    events: float | None = Field(description="Events over the period, behind the attainment.")
    enough: bool | None = Field(description="At least as many events as the target needs.")
    budget_left: float | None = Field(description="Share of the period's budget; negative when overspent.")
    burns: list[Burn] = Field(description="Each pair of windows; fires exactly when the compiled alert does.")
    fires: list[str] = Field(description="Names of those that fire.")
    forecast: Forecast | None = Field(description="When the budget is gone, were events to stay as bad.")


class ObjectiveDocument(_Document):
    """One objective in each of its groups."""

    objective: str = Field(description="The label `objective` of its records.")
    label: str = Field(description="What is promised, for people.")
    state: State = Field(description="The worst of its groups.")
    target: float
    period_s: int = Field(description="The budget's period, seconds.")
    needed_events: int = Field(description="Events from which an attainment says anything about this target.")
    recorded: bool = Field(description="Read from compiled records; else from raw series.")
    notes: list[str] = Field(description="What could not be had, and what the figures leave out.")
    groups: list[GroupDocument]


class SloDocument(_Document):
    """One SLO file as it stands."""

    name: str
    state: State = Field(description="The worst of its objectives.")
    page: bool = Field(description="Whether a page fires, by these figures or in Prometheus.")
    objectives: list[ObjectiveDocument]
    prometheus_alerts: list[PrometheusAlert] | None = Field(
        description="Alerts of this SLO, pending or firing, as Prometheus has them; null: it could not say."
    )


class ReadingDocument(_Document):
    """Every SLO file that was asked for."""

    as_of_unix_s: float = Field(description="When Prometheus was asked.")
    page: bool
    warnings: list[str]
    slos: list[SloDocument]


def reading_document(reading: Reading, as_of_unix_s: float) -> ReadingDocument:
    """The whole reading."""
    slos = [slo_document(one) for one in reading.slos]
    page = any(one.page for one in slos)
    return ReadingDocument(as_of_unix_s=as_of_unix_s, page=page, warnings=list(reading.warnings), slos=slos)


def slo_document(slo: SloStatus) -> SloDocument:
    """One SLO."""
    return SloDocument(
        name=slo.name,
        state=slo.state,
        page=slo.pages,
        objectives=[_objective(one) for one in slo.objectives],
        prometheus_alerts=None if slo.alerts is None else list(slo.alerts),
    )


def _objective(one: ObjectiveStatus) -> ObjectiveDocument:
    promise = one.one.promise
    return ObjectiveDocument(
        objective=one.one.id,
        label=promise.label,
        state=one.state,
        target=promise.target,
        period_s=one.one.terms.period_s,
        needed_events=one.one.terms.needed,
        recorded=one.recorded,
        notes=list(one.notes),
        groups=[_group(group) for group in one.groups],
    )


def _group(group: GroupStatus) -> GroupDocument:
    return GroupDocument(
        labels=dict(group.labels),
        state=group.state,
        attainment=group.attainment,
        low=group.low,
        high=group.high,
        events=group.events,
        enough=group.enough,
        budget_left=group.budget_left,
        burns=list(group.burns),
        fires=[burn.alert for burn in group.firing],
        forecast=group.forecast,
    )
