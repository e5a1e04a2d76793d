"""The work of `cliffwatch slo backtest`: history fetched and replayed, one objective after the other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import typer

from cliffwatch.cli.history import fetch_history
from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.cli.slo_backtest_words import say
from cliffwatch.errors import InputError
from cliffwatch.slo.backtest.composed import Composition
from cliffwatch.slo.backtest.document import Backtest, Span, document, write_curves
from cliffwatch.slo.backtest.history import Grid, History
from cliffwatch.slo.backtest.incidents import Incident, load_incidents, within
from cliffwatch.slo.backtest.subject import Subject, compositions, rates_of, subjects
from cliffwatch.slo.backtest.times import parse_instant, utc_text
from cliffwatch.slo.backtest.whatif import Case, Options, Outcome, cases, outcome, own_case
from cliffwatch.slo.burn import windows_of
from cliffwatch.slo.live.queries import Group
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.promql import selector
from cliffwatch.slo.spec import Objective, SloFile, load_slo
from cliffwatch.units import parse_seconds

MAX_INSTANTS = 2_500_000
OF_ANY = "is of kind any: its alerts are those of its parts, which are told by themselves"
OWN_ONLY = "what-if is of objectives; composites are told as they are written"


@dataclass(frozen=True, slots=True)
class Times:
    """The span in Unix seconds, the time between evaluations, and how far an alert may lie from its incident."""

    start_s: float
    end_s: float
    step_s: float
    match_within_s: float

    @classmethod
    def read(cls, start: str, end: str, every: str, match_within: str) -> Times:
        """From options as people write them. Raises InputError."""
        start_s, end_s = _span(start, end)
        step_s = _duration("--every", every, least=1.0, most=300.0)
        return cls(start_s, end_s, step_s, _duration("--match-within", match_within, least=0.0, most=7 * 86_400.0))

    def grid(self, reach_s: float) -> Grid:
        """Instants of evaluation, reaching back before the span. Raises InputError for none or too many."""
        grid = Grid.over(self.start_s, self.end_s, self.step_s, reach_s)
        if grid.replayed < 2:
            allowed = "a span longer than two of --every"
            raise InputError("hold no two evaluations", field="--from, --to", allowed=allowed)
        if grid.size > MAX_INSTANTS:
            allowed = f"up to {MAX_INSTANTS:,} with the period before them: a longer --every or a shorter span"
            raise InputError("have too many evaluations", field="--from, --to", value=grid.size, allowed=allowed)
        return grid


def refuse_csv(path: Path) -> None:
    """Raises InputError where no such file could be written, before the work is done for it."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError("cannot be written", field="--csv", value=str(path), allowed="a file in a folder that exists")


def run(
    file: Path, server: Prometheus, times: Times, options: Options, incidents: Path | None
) -> tuple[list[Backtest], Span]:
    """Backtest every objective of a file.

    Raises:
        InputError: the file or an option cannot be used, or Prometheus has no data at all.
        UnreachableError: Prometheus does not answer.
    """
    slo = load_slo(file)
    watched = subjects(slo, source=str(file))
    asked = [_Asked.of(one, slo, options) for one in watched]
    labelled = None if incidents is None else within(load_incidents(incidents), times.start_s, times.end_s)
    grid = times.grid(max(one.reach_s for one in asked))
    composed = compositions(slo, source=str(file))
    parts = {part for one in composed for part in one.parts}
    replayer = _Replayer(server, grid, labelled or (), times.match_within_s, parts)
    tests = [replayer.test(one) for one in asked]
    if all(test.own is None for test in tests):
        raise _no_data(watched, grid, server.url)
    tests += [replayer.composite(one) for one in composed]
    kept = {one.id for one in composed}
    notes = [f"{one.name} {OF_ANY}" for one in watched[0].watch.composites if one.name not in kept]
    notes += [OWN_ONLY] if composed and options else []
    return tests, Span(grid, labelled, times.match_within_s, tuple(replayer.warnings), tuple(notes))


def show(tests: list[Backtest], span: Span, *, curve: Path | None, as_json: bool) -> None:
    """Print the backtest; the curve goes to its file. Raises InputError where that cannot be written."""
    if curve is not None:
        _write(curve, tests)
    if as_json:
        typer.echo(json.dumps(document(tests, span), indent=2, allow_nan=False))
    else:
        say(tests, span)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An objective and its cases, by the objective that Prometheus is asked for."""

    one: Subject
    cases: tuple[tuple[Objective, Events, tuple[Case, ...]], ...]

    @classmethod
    def of(cls, one: Subject, slo: SloFile, options: Options) -> _Asked:
        own = own_case(one.objective, one.objective.threshold)
        by_objective: dict[Objective, list[Case]] = {one.objective: [own]}
        for objective, further in cases(one.objective, options) if options else ():
            by_objective.setdefault(objective, []).extend(case for case in further if case != own)
        return cls(one, tuple((key, _rates(key, one, slo), tuple(several)) for key, several in by_objective.items()))

    @property
    def windows(self) -> set[int]:
        """Every window that some case needs."""
        return set(windows_of(pair for _, _, several in self.cases for case in several for pair in case.pairs))

    @property
    def reach_s(self) -> float:
        """How far before the span its rules look."""
        return max(parse_seconds(self.one.watch.range_text), *self.windows)


@dataclass(slots=True)
class _Replayer:
    """Fetches what an objective needs, replays it, and lets it go before the next, but for the parts of composites."""

    server: Prometheus
    grid: Grid
    incidents: tuple[Incident, ...]
    tolerance_s: float
    parts: set[str]
    kept: dict[str, Mapping[Group, History]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def test(self, asked: _Asked) -> Backtest:
        one = asked.one
        outcomes: list[Outcome] = []
        for objective, events, several in asked.cases:
            fetched = fetch_history(self.server, events, asked.windows, self.grid, what=objective.label)
            self.warnings.update(dict.fromkeys(fetched.warnings))
            if not fetched.histories:
                return Backtest(one, None, ())
            if one.id in self.parts and objective == one.objective:
                self.kept[one.id] = fetched.histories
            outcomes += [
                outcome(case, fetched.histories, one.watch, self.incidents, self.tolerance_s) for case in several
            ]
        return Backtest(one, outcomes[0], tuple(outcomes[1:]))

    def composite(self, one: Composition) -> Backtest:
        """Replay a composite over the histories of its parts."""
        histories = one.histories(self.kept)
        if not histories:
            return Backtest(one, None, ())
        own = outcome(own_case(one.promise), histories, one.watch, self.incidents, self.tolerance_s)
        return Backtest(one, own, ())


def _rates(objective: Objective, one: Subject, slo: SloFile) -> Events:
    """The rates of a case. What the file itself has was checked, so a refusal is of an option's threshold."""
    if objective == one.objective:
        return one.events
    try:
        return rates_of(objective, slo, field="--thresholds")
    except InputError as error:
        raise InputError(error.message, field="--thresholds", value=error.value, allowed=error.allowed) from error


def _span(start: str, end: str) -> tuple[float, float]:
    now_s = time.time()
    start_s, end_s = _instant("--from", start, now_s), _instant("--to", end, now_s)
    if end_s > now_s + 60:
        raise InputError("is in the future", field="--to", value=end, allowed="up to now")
    if start_s >= end_s:
        raise InputError("is not before --to", field="--from", value=start, allowed=f"before {utc_text(end_s)} UTC")
    return start_s, end_s


def _instant(option: str, text: str, now_s: float) -> float:
    try:
        return parse_instant(text, now_s=now_s)
    except ValueError as error:
        raise InputError(str(error), field=option, value=text) from error


def _duration(option: str, text: str, *, least: float, most: float) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise InputError(str(error), field=option, value=text) from error
    if not least <= seconds <= most:
        allowed = f"{least:g}s to {most:g}s"
        raise InputError("is out of bounds", field=option, value=text, allowed=allowed)
    return seconds


def _no_data(watched: tuple[Subject, ...], grid: Grid, url: str) -> InputError:
    names = sorted({selector(one.events.metric, one.watch.match) for one in watched})
    return InputError(
        f"has no sample of {', '.join(names)} from {utc_text(grid.at(0))} to {utc_text(grid.end_s)} UTC",
        file=url,
        allowed="a span within the server's retention; watch.engine, version and match as its series are",
    )


def _write(path: Path, tests: list[Backtest]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            write_curves(stream, tests)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path, field="--csv") from error
