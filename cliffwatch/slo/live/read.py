"""The status of SLO files, read from a Prometheus: asked in two rounds, whatever is missing said and left out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cliffwatch.errors import CliffwatchError, shorten
from cliffwatch.slo.burn import Severity
from cliffwatch.slo.live import queries
from cliffwatch.slo.live.asks import ALERTS, Answer, Ask, Asker, PrometheusAlert, Reply, read_alerts, read_answer
from cliffwatch.slo.live.clock import clock_note
from cliffwatch.slo.live.queries import Found
from cliffwatch.slo.live.status import Evidence, GroupStatus, State, group_status, worst
from cliffwatch.slo.live.watched import NEEDS_RULES, Watched
from cliffwatch.units import format_seconds

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ObjectiveStatus:
    """One objective in each of its groups.

    Attributes:
        recorded: read from compiled records; else from the same expressions over raw series.
        notes: what could not be had, and what the figures leave out.
    """

    one: Watched
    state: State
    groups: tuple[GroupStatus, ...]
    recorded: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SloStatus:
    """One file. `alerts`: those of this SLO that Prometheus itself has pending or firing; None where it cannot say."""

    name: str
    state: State
    objectives: tuple[ObjectiveStatus, ...]
    alerts: tuple[PrometheusAlert, ...] | None

    @property
    def pages(self) -> bool:
        """Whether a page fires: by these figures, or in Prometheus (which also watches for dead and hung engines)."""
        burns = (burn for one in self.objectives for group in one.groups for burn in group.firing)
        return any(burn.severity is Severity.PAGE for burn in burns) or any(
            alert.state == "firing" and alert.labels.get("severity") == Severity.PAGE for alert in self.alerts or ()
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """The status of every file, and what Prometheus warned of on the way."""

    slos: tuple[SloStatus, ...]
    warnings: tuple[str, ...]


def read_status(files: Mapping[str, Sequence[Watched]], ask: Asker) -> Reading:
    """The status of SLO files by name.

    Raises:
        CliffwatchError: Prometheus cannot be asked at all; what fails for one objective only is in its notes.
    """
    objectives = {(name, one.id): one for name, ones in files.items() for one in ones}
    before_s = time.time()
    records, alerts = ask([queries.records_ask(files), ALERTS])
    answer = read_answer(records)
    warnings = [*answer.warnings, *_clock(answer, before_s)]
    session = _Session(objectives, queries.take_records(answer, objectives), warnings)
    asks = dict(session.asks())
    distinct = list(dict.fromkeys(asks.values()))
    replies = dict(zip(distinct, ask(distinct), strict=True))
    for (step, key), one in asks.items():
        session.take(step, key, replies[one])
    fired = _alerts(alerts, session.warnings)
    slos = tuple(
        _slo(name, [session.status(objectives[name, one.id]) for one in ones], fired) for name, ones in files.items()
    )
    return Reading(slos, tuple(dict.fromkeys(session.warnings)))


def unread(files: Mapping[str, Sequence[Watched]]) -> Reading:
    """What can be said before Prometheus ever answered: of every objective, that there are no data."""
    session = _Session({(name, one.id): one for name, ones in files.items() for one in ones}, {}, [])
    return Reading(tuple(_slo(name, [session.status(one) for one in ones], None) for name, ones in files.items()), ())


class _Session:
    """One reading under way: what was found so far, and what could not be."""

    def __init__(self, objectives: Mapping[Key, Watched], recorded: dict[Key, Found], warnings: list[str]) -> None:
        self._objectives = objectives
        self._recorded = frozenset(recorded)
        self._found = recorded | {key: Found() for key in objectives if key not in recorded}
        self._notes: dict[Key, list[str]] = {key: [] for key in objectives}
        self.warnings = warnings

    def asks(self) -> Iterator[tuple[tuple[str, Key], Ask]]:
        """The second round's questions, by step and objective; equal ones are asked once."""
        names = {name for name, _ in self._recorded}
        for key, one in self._objectives.items():
            if key in self._recorded:
                yield ("period", key), queries.period_ask(names, one.watch)
            elif not one.raw:
                self._notes[key].append(NEEDS_RULES)
            else:
                yield ("raw", key), queries.raw_windows_ask(one)
                if one.watch.calendar is None:
                    yield ("raw period", key), queries.raw_period_ask(one)
                else:
                    self._notes[key].append("attainment and budget of a calendar's period need the compiled rules")
            if one.metric is not None:
                yield ("edges", key), queries.edges_ask(one.watch, one.metric)

    def take(self, step: str, key: Key, reply: Reply) -> None:
        try:
            answer = read_answer(reply)
        except CliffwatchError as error:
            self._notes[key].append(f"{_WITHOUT[step]}: Prometheus {error.message}")
            return
        self.warnings += answer.warnings
        try:
            _TAKE[step](self._objectives[key], answer, self._found[key])
        except ValueError as error:  # series without the labels that were asked for: a proxy, or another's server
            self._notes[key].append(f"{_WITHOUT[step]}: Prometheus answers another question: {shorten(str(error))}")

    def status(self, one: Watched) -> ObjectiveStatus:
        key = (one.slo, one.id)
        found = self._found[key]
        groups = tuple(group_status(dict(group), found.evidence(group), one.terms) for group in found.groups()) or (
            group_status({}, Evidence({}), one.terms),
        )
        if found.over_one:
            self._notes[key].append("more bad events than events were counted: both sides do not count the same thing")
        notes = (*self._notes[key], *_edge_notes(one, found), *one.events.notes)
        return ObjectiveStatus(one, worst(group.state for group in groups), groups, key in self._recorded, notes)


_TAKE = {
    "period": queries.take_period,
    "raw": queries.take_raw,
    "raw period": queries.take_raw_period,
    "edges": queries.take_edges,
}
_WITHOUT = {
    "period": "the number of events is not known",
    "raw": "no figure could be read",
    "raw period": "attainment and budget are not known",
    "edges": "whether every instance has the bucket edge is not known",
}


def _edge_notes(one: Watched, found: Found) -> list[str]:
    lacking = sorted({instance for instances in found.without_edge.values() for instance in instances})
    if not lacking or one.threshold_s is None:
        return []
    shown = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
    edge = format_seconds(one.threshold_s)
    return [f"no bucket edge at {edge} on {shown}: their events count by the next lower edge, or not at all"]


def _clock(answer: Answer, before_s: float) -> list[str]:
    """An instant query is evaluated at the server's own time, which stands beside each value."""
    times = {series.points[-1][0] for series in answer.series}
    note = clock_note(max(times), before_s, time.time()) if times else None
    return [] if note is None else [note]


def _alerts(reply: Reply, warnings: list[str]) -> tuple[PrometheusAlert, ...] | None:
    try:
        return read_alerts(reply)
    except CliffwatchError as error:
        warnings.append(f"which alerts Prometheus has is not known: it {error.message}")
        return None


def _slo(name: str, objectives: list[ObjectiveStatus], alerts: tuple[PrometheusAlert, ...] | None) -> SloStatus:
    own = None if alerts is None else tuple(one for one in alerts if one.labels.get("slo") == name)
    return SloStatus(name, worst(one.state for one in objectives), tuple(objectives), own)
