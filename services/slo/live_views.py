"""A reading as the API's answers: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from cliffwatch.slo.live.alert_events import AlertEvent
from cliffwatch.slo.live.document import ObjectiveDocument, ReadingDocument, SloDocument
from cliffwatch.slo.live.history import Grid, ObjectiveHistory
from cliffwatch.slo.live.status import State, worst
from services.slo.live_models import (
    Alerts,
    EventItem,
    FiringBurn,
    History,
    HistoryGroup,
    HistoryObjective,
    ObjectiveItem,
    PrometheusAlertItem,
    SloDetail,
    SloItem,
    SloList,
    Source,
)
from services.slo.watcher import Seen

NOT_WATCHED = "no SLO is watched: start the service with --watch FILE --prometheus URL"


def source(seen: Seen) -> Source:
    """How fresh a reading is."""
    document = seen.document
    return Source(
        as_of_unix_s=document.as_of_unix_s if seen.ever else None,
        problem=seen.problem,
        warnings=document.warnings,
    )


def slos(seen: Seen | None) -> SloList:
    """The list."""
    if seen is None:
        return SloList(source=Source(as_of_unix_s=None, problem=None, warnings=[]), slos=[], note=NOT_WATCHED)
    return SloList(source=source(seen), slos=[_item(one) for one in current(seen).slos], note=None)


def slo(name: str, seen: Seen) -> SloDetail:
    """One SLO that is watched."""
    document = next(one for one in current(seen).slos if one.name == name)
    return SloDetail(source=source(seen), slo=document)


def current(seen: Seen) -> ReadingDocument:
    """The reading; where nothing newer could be had, states that were known are `stale`, figures as they were."""
    if seen.problem is None or not seen.ever:
        return seen.document
    return seen.document.model_copy(update={"slos": [_stale(one) for one in seen.document.slos]})


def _stale(slo: SloDocument) -> SloDocument:
    objectives = [
        one.model_copy(
            update={
                "state": _old(one.state),
                "groups": [group.model_copy(update={"state": _old(group.state)}) for group in one.groups],
            }
        )
        for one in slo.objectives
    ]
    return slo.model_copy(update={"state": worst(one.state for one in objectives), "objectives": objectives})


def _old(state: State) -> State:
    return state if state is State.NO_DATA else State.STALE


def _item(slo: SloDocument) -> SloItem:
    return SloItem(
        name=slo.name, state=slo.state, page=slo.page, objectives=[_objective(one) for one in slo.objectives]
    )


def _objective(one: ObjectiveDocument) -> ObjectiveItem:
    known = [group for group in one.groups if group.attainment is not None]
    least = min(known, key=lambda group: group.attainment or 0.0, default=None)
    return ObjectiveItem(
        objective=one.objective,
        label=one.label,
        state=one.state,
        target=one.target,
        groups=len(one.groups),
        attainment=least.attainment if least else None,
        events=least.events if least else None,
        budget_left=least.budget_left if least else None,
        fires=sorted({name for group in one.groups for name in group.fires}),
    )


def history(name: str, grid: Grid, objectives: Sequence[ObjectiveHistory]) -> History:
    """Budget and burn rates over time."""
    return History(
        slo=name,
        step_s=grid.step_s,
        times_unix_s=grid.times,
        objectives=[
            HistoryObjective(
                objective=one.one.id,
                label=one.one.promise.label,
                limits={alert.pair.long_s: float(alert.factor) for alert in one.one.terms.alerts},
                groups=[
                    HistoryGroup(
                        labels=dict(group.labels), budget_left=group.budget_left, burn_rates=dict(group.burn_rates)
                    )
                    for group in one.groups
                ],
                note=one.note,
            )
            for one in objectives
        ],
    )


def alerts(seen: Seen, events: Sequence[AlertEvent], events_problem: str | None) -> Alerts:
    """What fires and what fired."""
    found = current(seen).slos
    unknown = any(slo.prometheus_alerts is None for slo in found)
    return Alerts(
        source=source(seen),
        firing=[
            FiringBurn(slo=slo.name, objective=one.objective, labels=group.labels, burn=burn)
            for slo in found
            for one in slo.objectives
            for group in one.groups
            for burn in group.burns
            if burn.fires
        ],
        prometheus=None
        if unknown
        else [
            PrometheusAlertItem(name=one.name, slo=slo.name, state=one.state, labels=one.labels, since=one.since)
            for slo in found
            for one in slo.prometheus_alerts or ()
        ],
        events=[
            EventItem(
                name=one.name,
                labels=one.labels,
                fingerprint=one.fingerprint,
                started_unix_s=one.started_unix_s,
                ended_unix_s=one.ended_unix_s,
                late_up_to_s=one.step_s,
            )
            for one in events
        ],
        events_problem=events_problem,
    )
