"""A backtest in words and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table

from cliffwatch.cli.console import console
from cliffwatch.report.words import UNKNOWN, interval, share, target
from cliffwatch.slo.backtest.document import Backtest, Span, counted
from cliffwatch.slo.backtest.incidents import Rate
from cliffwatch.slo.backtest.replay import Firing, Replayed, State
from cliffwatch.slo.backtest.times import utc_text
from cliffwatch.slo.backtest.whatif import Outcome
from cliffwatch.slo.burn import Severity
from cliffwatch.units import format_seconds

SHOWN = 40
GAPS_SHOWN = 5
FIRING_HEAD = (
    "alert",
    "severity",
    "group",
    "from (UTC)",
    "to (UTC)",
    "for",
    "peak burn",
    "bad events",
    "budget left",
)
STATE = {
    State.PAGE: "a page fires",
    State.TICKET: "a ticket fires",
    State.NO_DATA: "no data",
    State.NO_TRAFFIC: "no traffic",
    State.QUIET: "quiet",
}


def say(tests: Sequence[Backtest], span: Span) -> None:
    """Print all of it; warnings of the server first, since they put the rest in doubt."""
    shown = console(markup=False)
    for warning in span.warnings:
        shown.print(f"Prometheus warns: {warning}")
    for note in span.notes:
        shown.print(f"note: {note}")
    grid = span.grid
    shown.print(f"{utc_text(grid.at(0))} to {utc_text(grid.end_s)} UTC, evaluated every {format_seconds(grid.step_s)}")
    for test in tests:
        shown.print()
        for part in _objective(test, span):
            shown.print(part)


def _objective(test: Backtest, span: Span) -> Iterator[str | Table]:
    label = f"{test.one.promise.label}, {target(test.one.promise.target)}"
    if test.own is None:
        yield f"{label}: no data in this span"
        return
    own = test.own
    yield f"{label}: {_count(own, Severity.PAGE, 'page')}, {_count(own, Severity.TICKET, 'ticket')}"
    for group in own.groups:
        yield from _group(group, counted(test.one.promise))
    if own.firings:
        yield _firings(own.firings)
        if (more := len(own.firings) - SHOWN) > 0:
            yield f"  and {more} more; all of them are in --json"
    if span.incidents is not None:
        yield from _incidents(own)
    if test.what_if:
        yield _what_if([own, *test.what_if])
    yield from (f"  note: {note}" for note in test.one.notes)


def _count(one: Outcome, severity: Severity, name: str) -> str:
    count = len(one.of(severity))
    return f"{count} {name}{'' if count == 1 else 's'}"


def _name(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{label} {value}" for label, value in labels.items())


def _group(one: Replayed, what: str) -> Iterator[str]:
    name = _name(one.labels)
    yield f"  {f'{name}: ' if name else ''}{_budget(one, what)}"
    total_s = sum(one.state_s.values())
    times = [
        f"{STATE[state]} {_span(seconds)} ({share(seconds / total_s)})"
        for state, seconds in one.state_s.items()
        if seconds
    ]
    yield f"    {', '.join(times)}; budget spent for {_span(one.spent_s)}"
    longest = sorted(one.gaps, key=lambda gap: gap.start_s - gap.end_s)[:GAPS_SHOWN]
    if longest:
        listed = ", ".join(f"{utc_text(gap.start_s)} to {utc_text(gap.end_s)}" for gap in longest)
        yield f"    no data in {len(one.gaps)} gap{'' if len(one.gaps) == 1 else 's'}, the longest: {listed}"


def _budget(one: Replayed, what: str) -> str:
    last = one.grid.replayed - 1
    left, events = one.left_at(last), one.budget.events[last]
    so_far = one.budget.left_so_far[last]
    if so_far != so_far:
        return f"budget left at the end: unknown, no {what} in the period"
    of = f"of {events:,.0f} {what}"
    if left is not None:
        since = utc_text(one.budget.complete_from_s or 0.0)
        return f"budget left at the end: {_percent(left)} {of}; known since {since}, before that the history is short"
    return f"budget left at the end: unknown, the history is shorter than the period; {_percent(so_far)} {of} so far"


def _firings(firings: Sequence[Firing]) -> Table:
    table = _table(*FIRING_HEAD)
    for one in firings[:SHOWN]:
        lasted = UNKNOWN if one.end_s is None else _span(one.end_s - one.start_s)
        table.add_row(
            one.alert,
            one.severity.value,
            _name(one.labels) or "all",
            f"{'before ' if one.open_start else ''}{utc_text(one.start_s)}",
            "still fires" if one.end_s is None else utc_text(one.end_s),
            lasted,
            f"{one.peak_burn_rate:.3g}",
            f"{one.bad_events:,.0f}",
            UNKNOWN if one.budget_left is None else _percent(one.budget_left),
        )
    return table


def _incidents(own: Outcome) -> Iterator[str | Table]:
    if own.scores is None:
        yield "  incidents: none of the file's lies in this span, so neither precision nor recall is known"
        return
    for name, what in (("pages", "pages"), ("any", "pages or tickets")):
        score = own.scores[name]
        yield f"  {what} against incidents: precision {_rate(score.precision)}, recall {_rate(score.recall)}"
    table = _table("incident", "from (UTC)", "first page", "after", "first alert", "after")
    for paged, any_alert in zip(own.scores["pages"].found, own.scores["any"].found, strict=True):
        cells = [
            cell
            for found in (paged, any_alert)
            for cell in (found.alert or "none", UNKNOWN if found.delay_s is None else _signed(found.delay_s))
        ]
        table.add_row(paged.incident.name, utc_text(paged.incident.start), *cells)
    yield table


def _what_if(outcomes: Sequence[Outcome]) -> Table:
    table = _table("what if", "target", "windows", "pages", "tickets", "budget left", "page precision", "page recall")
    for number, one in enumerate(outcomes):
        threshold = one.case.threshold
        score = one.scores["pages"] if one.scores is not None else None
        case = "" if number else "as written"
        case += "" if threshold is None else f" ≤ {format_seconds(threshold)}"
        table.add_row(
            case.strip(),
            target(one.case.objective.target),
            one.case.windows,
            str(len(one.of(Severity.PAGE))),
            str(len(one.of(Severity.TICKET))),
            UNKNOWN if one.budget_left is None else _percent(one.budget_left),
            UNKNOWN if score is None else _rate(score.precision),
            UNKNOWN if score is None else _rate(score.recall),
        )
    return table


def _table(*columns: str) -> Table:
    return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)


def _rate(one: Rate) -> str:
    if one.value is None or one.interval is None:
        return f"{UNKNOWN} (n=0)"
    return f"{share(one.value)} ({one.hits} of {one.n}, {interval(*one.interval)})"


def _percent(value: float) -> str:
    return f"{value * 100:.1f} %"


def _signed(seconds: float) -> str:
    return f"-{_span(-seconds)}" if seconds < 0 else _span(seconds)


def _span(seconds: float) -> str:
    if seconds >= 2 * 86_400:
        return f"{seconds / 86_400:.1f} d"
    return format_seconds(seconds) if seconds else "0 s"
