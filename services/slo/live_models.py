"""What the API answers about SLOs that are watched on Prometheus."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from cliffwatch.slo.live.document import SloDocument
from cliffwatch.slo.live.status import Burn, State


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Source(_Answer):
    """How fresh the figures are. An old reading stands, with `problem`, while Prometheus does not answer."""

    as_of_unix_s: float | None = Field(
        description="When Prometheus was asked for these figures; null: it never answered."
    )
    problem: str | None = Field(description="Why there is nothing newer; null: the figures are fresh.")
    warnings: list[str] = Field(description="What Prometheus itself warned of.")


class ObjectiveItem(_Answer):
    """One objective, by the worst of its groups."""

    objective: str
    label: str
    state: State
    target: float
    groups: int = Field(description="How many groups it has.")
    attainment: float | None = Field(description="The least of its groups.")
    events: float | None = Field(description="Events behind that attainment.")
    budget_left: float | None = Field(description="The least of its groups.")
    fires: list[str] = Field(description="Burn alerts that fire in some group.")


class SloItem(_Answer):
    """One SLO as the list has it."""

    name: str
    state: State
    page: bool
    objectives: list[ObjectiveItem]


class SloList(_Answer):
    """Every SLO that is watched, in the order of the files."""

    source: Source
    slos: list[SloItem]
    note: str | None = Field(description="Why nothing is watched.")


class SloDetail(_Answer):
    """One SLO: every objective in every group, its burn rates and its forecast."""

    source: Source
    slo: SloDocument


class HistoryGroup(_Answer):
    """One group over time; lists have one entry for each of `times_unix_s`, null where nothing is known."""

    labels: dict[str, str]
    budget_left: list[float | None]
    burn_rates: dict[int, list[float | None]] = Field(description="By window, seconds.")


class HistoryObjective(_Answer):
    """One objective over time."""

    objective: str
    label: str
    limits: dict[int, float] = Field(description="By long window, seconds: the burn rate above which it may alert.")
    groups: list[HistoryGroup]
    note: str | None


class History(_Answer):
    """Budget left and burn rates of one SLO over time."""

    slo: str
    step_s: float
    times_unix_s: list[float]
    objectives: list[HistoryObjective]


class FiringBurn(_Answer):
    """A burn alert that fires by these figures."""

    slo: str
    objective: str
    labels: dict[str, str]
    burn: Burn


class PrometheusAlertItem(_Answer):
    """An alert as Prometheus has it, pending or firing."""

    name: str
    slo: str
    state: str
    labels: dict[str, str]
    since: str


class EventItem(_Answer):
    """One alert from firing to resolved, as Alertmanager or Prometheus told it."""

    name: str
    labels: dict[str, str]
    fingerprint: str
    started_unix_s: float
    ended_unix_s: float | None = Field(description="Null: it still fires.")
    late_up_to_s: float = Field(description="How late the beginning may be told: 0 by Alertmanager, else a step.")


class Alerts(_Answer):
    """What fires now, by these figures and by Prometheus, and what did."""

    source: Source
    firing: list[FiringBurn] = Field(description="By the figures of this service.")
    prometheus: list[PrometheusAlertItem] | None = Field(description="By Prometheus; null: it could not say.")
    events: list[EventItem] = Field(description="Newest first: the last day's, and those that Alertmanager sent.")
    events_problem: str | None = Field(description="Why Prometheus's own past alerts are not among them.")


class Received(_Answer):
    """A notification was taken."""

    alerts: int
