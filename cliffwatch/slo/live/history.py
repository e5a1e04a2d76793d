"""Budget left and burn rates of one SLO over time, on one grid of instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cliffwatch.errors import CliffwatchError
from cliffwatch.slo.burn import burn_rate
from cliffwatch.slo.live.asks import Answer, Ask, Asker, Series, ranged, read_answer
from cliffwatch.slo.live.queries import Group, group_of
from cliffwatch.slo.live.watched import NEEDS_RULES, Watched
from cliffwatch.slo.prometheus.promql import selector, window_text

PERIOD = 0  # in place of a window's length: the whole period


@dataclass(frozen=True, slots=True)
class Grid:
    """Instants in Unix seconds: `start_s`, then every `step_s`, `count` in all."""

    start_s: float
    step_s: float
    count: int

    @property
    def times(self) -> list[float]:
        return [self.start_s + step * self.step_s for step in range(self.count)]

    def ask(self, promql: str) -> Ask:
        end_s = self.start_s + (self.count - 1) * self.step_s
        return ranged(promql, start_s=self.start_s, end_s=end_s, step_s=self.step_s)

    def place(self, series: Series) -> list[float | None]:
        """The series' values on the grid; None where it has none."""
        values: list[float | None] = [None] * self.count
        for time_s, value in series.points:
            at = round((time_s - self.start_s) / self.step_s)
            if 0 <= at < self.count:
                values[at] = value
        return values


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """One group: budget left at each instant, and burn rates by window (seconds)."""

    labels: Mapping[str, str]
    budget_left: list[float | None]
    burn_rates: Mapping[int, list[float | None]]


@dataclass(frozen=True, slots=True)
class ObjectiveHistory:
    """One objective; `note` where something could not be had."""

    one: Watched
    groups: tuple[GroupHistory, ...]
    note: str | None


# share of bad events on the grid, by group and window
_Ratios = dict[Group, dict[int, list[float | None]]]


def read_history(ones: Sequence[Watched], grid: Grid, ask: Asker) -> tuple[ObjectiveHistory, ...]:
    """The history of one SLO's objectives: the records where they stand, else raw series (1 h and the period only).

    Raises:
        CliffwatchError: Prometheus cannot be asked at all.
    """
    (reply,) = ask([grid.ask(selector("", {"slo": ones[0].slo}, {"__name__": "cliffwatch_slo:bad:ratio.+"}))])
    answer = read_answer(reply)
    recorded = {one.id: _of_records(one, answer, grid) for one in ones}
    return tuple(
        _history(one, recorded[one.id], None, grid) if recorded[one.id] else _raw(one, grid, ask) for one in ones
    )


def _of_records(one: Watched, answer: Answer, grid: Grid) -> _Ratios:
    windows = {f"cliffwatch_slo:bad:ratio{window_text(window)}": window for window in one.terms.windows}
    windows[f"cliffwatch_slo:bad:ratio{one.watch.period_text}"] = PERIOD
    ratios: _Ratios = {}
    for series in answer.series:
        window = windows.get(series.labels.get("__name__", ""))
        if window is not None and series.labels.get("objective") == one.id:
            ratios.setdefault(group_of(one, series.labels), {})[window] = grid.place(series)
    return ratios


def _raw(one: Watched, grid: Grid, ask: Asker) -> ObjectiveHistory:
    if not one.raw:
        return ObjectiveHistory(one, (), NEEDS_RULES)
    fastest = min(alert.pair.long_s for alert in one.terms.alerts)
    asked = {fastest: window_text(fastest)}
    if one.watch.calendar is None:
        asked[PERIOD] = one.watch.range_text
    expressions = [f"{one.events.bad_rate(text)} / ({one.events.rate(text)} > 0)" for text in asked.values()]
    ratios: _Ratios = {}
    notes = []
    for window, reply in zip(asked, ask([grid.ask(text) for text in expressions]), strict=True):
        try:
            answer = read_answer(reply)
        except CliffwatchError as error:
            what = "budget left" if window == PERIOD else "burn rates"
            notes.append(f"{what} without the compiled rules: Prometheus {error.message}")
            continue
        for series in answer.series:
            ratios.setdefault(group_of(one, series.labels), {})[window] = grid.place(series)
    return _history(one, ratios, "; ".join(notes) or None, grid)


def _history(one: Watched, ratios: _Ratios, note: str | None, grid: Grid) -> ObjectiveHistory:
    groups = []
    for group, windows in sorted(ratios.items()):
        rates = {
            window: [None if bad is None else burn_rate(bad, one.terms.target) for bad in values]
            for window, values in sorted(windows.items())
        }
        spent = rates.pop(PERIOD, [None] * grid.count)
        left = [None if one_spent is None else 1 - one_spent for one_spent in spent]
        groups.append(GroupHistory(dict(group), left, rates))
    return ObjectiveHistory(one, tuple(groups), note)
