"""`cliffwatch slo status`: what a person in an incident asks first, on one screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NoReturn

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cliffwatch.cli.console import console
from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.errors import ExitCode, UnreachableError
from cliffwatch.report.words import UNKNOWN, attained, interval, target
from cliffwatch.slo.live.document import reading_document
from cliffwatch.slo.live.read import ObjectiveStatus, Reading, SloStatus, read_status
from cliffwatch.slo.live.status import BurnWindow, Forecast, GroupStatus, State
from cliffwatch.slo.live.watched import Watched
from cliffwatch.slo.prometheus.promql import window_text

EVERY_S = 10.0
FEW = "†"
COLOURS = {
    State.EXHAUSTED: "bold red",
    State.BURNING: "bold red",
    State.STALE: "yellow",
    State.NO_DATA: "yellow",
    State.MIXED_LAYOUT: "yellow",
    State.NO_TRAFFIC: "dim",
    State.GOOD: "green",
}
HEAD = (
    "objective",
    "group",
    "state",
    "attained",
    "events",
    "budget left",
    "burns (long / short)",
    "fires",
    "budget lasts",
)
Files = dict[str, tuple[Watched, ...]]


def show(files: Files, server: Prometheus, *, as_json: bool) -> ExitCode:
    """Print the status once. Raises UnreachableError where Prometheus cannot be asked."""
    reading = read_status(files, server.ask_all)
    if as_json:
        typer.echo(reading_document(reading, time.time()).model_dump_json(indent=2))
    else:
        console().print(_screen(reading, server.url))
    return ExitCode.SLO_MISSED if any(one.pages for one in reading.slos) else ExitCode.OK


def watch(files: Files, server: Prometheus) -> NoReturn:
    """Show the status again every `EVERY_S` until Ctrl-C; beside an old one it is said why there is no new one."""
    shown, last = console(), Group()
    while True:
        try:
            last = _screen(read_status(files, server.ask_all), server.url)
            screen = last
        except UnreachableError as error:
            screen = Group(last, Text(f"OLD: {error}", "bold red"))
        if shown.is_terminal:
            shown.clear()
        shown.print(screen)
        shown.file.flush()
        time.sleep(EVERY_S)


def _screen(reading: Reading, url: str) -> Group:
    when = datetime.now(UTC).strftime("%H:%M:%S UTC")
    parts: list[RenderableType] = [Text(f"{url} at {when}")]
    for slo in reading.slos:
        parts += _slo(slo)
    parts += [Text(f"Prometheus warns: {text}", "yellow") for text in reading.warnings]
    if any(group.enough is False for slo in reading.slos for one in slo.objectives for group in one.groups):
        parts.append(Text(f"{FEW} fewer events than the target needs: ceil(10 / (1 - target))", "dim"))
    return Group(*parts)


def _slo(slo: SloStatus) -> Iterator[RenderableType]:
    yield Text.assemble("\n", (slo.name, "bold"), "  ", _state(slo.state), "  PAGES" if slo.pages else "")
    table = Table(*HEAD, box=box.SIMPLE_HEAD, pad_edge=False)
    for one in slo.objectives:
        for group in one.groups:
            table.add_row(*_row(one, group))
    yield table
    for alert in slo.alerts or ():
        labels = ", ".join(f"{key} {value}" for key, value in alert.labels.items() if key not in {"alertname", "slo"})
        yield Text(f"Prometheus: {alert.name} {alert.state} since {alert.since[:19]} ({labels})")
    notes: dict[str, list[str]] = {}
    for one in slo.objectives:
        for note in one.notes:
            notes.setdefault(note, []).append(one.one.promise.label)
    for note, whose in notes.items():
        yield Text(f"note: {'; '.join(whose)}: {note}", "dim")


def _row(one: ObjectiveStatus, group: GroupStatus) -> list[Text]:
    promise = one.one.promise
    sure = "" if group.low is None else f" ({interval(group.low, group.high)})"
    few = FEW if group.enough is False else ""
    cells: list[str | Text] = [
        f"{promise.label}, {target(promise.target)}",
        ", ".join(group.labels.values()) or "all",
        _state(group.state),
        f"{attained(group.attainment)}{sure}{few}",
        UNKNOWN if group.events is None else f"{group.events:,.0f}",
        UNKNOWN if group.budget_left is None else f"{group.budget_left * 100:.1f} %",
        "  ".join(f"{_rate(burn.long)}/{_rate(burn.short)}" for burn in group.burns),
        ", ".join(f"{burn.alert} ({burn.severity})" for burn in group.firing) or "nothing",
        _lasts(group.forecast),
    ]
    return [cell if isinstance(cell, Text) else Text(cell, overflow="fold") for cell in cells]


def _state(state: State) -> Text:
    return Text(state.replace("_", " "), COLOURS[state])


def _rate(window: BurnWindow) -> str:
    value = UNKNOWN if window.burn_rate is None else f"{window.burn_rate:.3g}"
    return f"{window_text(window.window_s)} {value}"


def _lasts(forecast: Forecast | None) -> str:
    if forecast is None:
        return UNKNOWN
    if forecast.after_s == 0:
        return "spent"
    return f"{_span(forecast.after_s)} ({_span(forecast.earliest_s)} to {_span(forecast.latest_s)})"


def _span(seconds: float | None) -> str:
    """A length of time in whole steps: `45 min`, `3.2 h`, `5.1 d`; None is for ever."""
    if seconds is None:
        return "no end"
    for limit, unit_s, unit in ((7_200, 60, "min"), (172_800, 3_600, "h")):
        if seconds < limit:
            return f"{seconds / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:,.3g} d" if seconds < 1e8 else "over 3 years"
