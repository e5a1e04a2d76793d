"""Both sides of a run as tables for a terminal, and the cells that the HTML report shows too."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cliffwatch.report.words import UNKNOWN, attained, interval
from cliffwatch.slo.beside.document import Beside, Breakdown, MeanDocument, ShareBeside
from cliffwatch.units import format_seconds

TITLE = "The engine's own figures over the same time"


def render(found: Beside) -> RenderableType:
    """Means side by side, what they are made of, shares at thresholds, and what to know of them."""
    return Group(*_parts(found))


def seconds(value: float | None) -> str:
    """A time with its sign, `–` where it is unknown."""
    return UNKNOWN if value is None else f"{'-' if value < 0 else ''}{format_seconds(abs(value))}"


def mean(one: MeanDocument | None) -> str:
    """`12 ms (n 1,000)`."""
    return UNKNOWN if one is None else f"{seconds(one.mean_s)} (n {one.n:,})"


def covered(found: Beside) -> str:
    """Over which part of the run the two sides were compared, and on how many requests."""
    if found.from_unix_s is None or found.to_unix_s is None:
        return "Prometheus has no samples of the engine in the run's time: its side is not known"
    before, after = found.run_from_unix_s - found.from_unix_s, found.to_unix_s - found.run_to_unix_s
    ends = [
        f"{abs(before):.1f} s {'before' if before >= 0 else 'after'} it began",
        f"{abs(after):.1f} s {'after' if after >= 0 else 'before'} it ended",
    ]
    what = "the whole run" if found.whole else "a part of the run"
    return f"{what}, by samples from {ends[0]} to {ends[1]}; all phases, {found.sent:,} prompts sent"


def made_of(one: Breakdown) -> str:
    """`queue 1 ms + prefill 20 ms + ...`, in the order in which they follow each other."""
    return " + ".join(f"{part.name} {seconds(part.mean_s)}" for part in one.parts)


def engine_share(one: ShareBeside) -> str:
    """The engine's share between its bucket edges, or exactly at one."""
    if one.low is None or one.high is None:
        return UNKNOWN
    said = attained(one.low) if one.low_edge_s == one.high_edge_s else interval(one.low, one.high)
    return f"{said} (n {one.engine_n:,})"


def client_share(one: ShareBeside) -> str:
    """Our own share of the same."""
    return f"{attained(one.client)} (n {one.client_n:,})"


def notes(found: Beside) -> list[str]:
    """What is not known and why, then what to know of the rest."""
    return [*(f"{one.label}: {one.lacking}" for one in found.figures if one.lacking), *found.notes]


def _parts(found: Beside) -> Iterator[RenderableType]:
    yield Text(f"\n{TITLE}", "bold")
    yield Text(f"{found.engine}: {covered(found)}", "dim")
    table = _table("mean of", "client", "engine", "difference")
    for figure in found.figures:
        table.add_row(figure.label, mean(figure.client), mean(figure.engine), seconds(figure.difference_s))
    yield table
    for one in found.breakdowns:
        yield Text(f"{one.label} {seconds(one.client_s)} = {made_of(one)}")
    if found.shares:
        shares = _table("share within", "client", "engine, by its bucket edges")
        for each in found.shares:
            limit = f"{each.label} ≤ {format_seconds(each.threshold_s)}"
            shares.add_row(limit, client_share(each), engine_share(each))
        yield shares
    for note in notes(found):
        yield Text(f"note: {note}", "dim")


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, head in enumerate(heads):
        table.add_column(head, justify="right" if at else "left")
    return table
