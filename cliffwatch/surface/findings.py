"""What a person should see first in a grid: its cliffs, or else its steepest step, in words and by place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cliffwatch.surface.bins import Key
from cliffwatch.surface.cliff import Cliff, find_cliffs
from cliffwatch.surface.grid import Grid, Question, Samples, Source, grid_of, samples
from cliffwatch.surface.series import STATISTICS, series_of
from cliffwatch.surface.steps import steepest
from cliffwatch.units import format_seconds

CLIFF, STEEPEST = "cliff", "steepest"
TOLD = 3  # cliffs in words; all are outlined


@dataclass(frozen=True, slots=True)
class Finding:
    """A jump in words: from the row before to `row`, in `column` (keys of the grid's sides)."""

    kind: str
    row: Key
    column: Key
    says: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What a grid shows: `says` is one sentence or two, `found` every place, the greatest first."""

    says: str
    found: tuple[Finding, ...]


def findings(source: Source, question: Question, label: str) -> Findings:
    """The cliffs of each column along the rows; where there is none, the steepest step.

    A statistic that cliffs are not looked for in is replaced by the median.

    Args:
        label: the metric in words.

    Raises:
        InputError, RunError: as `RowsSource.grids`.
    """
    if question.statistic not in STATISTICS:
        question = replace(question, statistic="p50", threshold=None)
    question = replace(question, facet=None)
    seen = samples(source, question)
    return findings_in(grid_of(question, seen), seen, label)


def findings_in(grid: Grid, seen: Samples, label: str) -> Findings:
    """The same of a grid that is there, and its samples; its statistic is one that cliffs are looked for in."""
    statistic = grid.question.statistic
    what = f"{statistic.upper() if statistic != 'mean' else 'Mean'} of {label}"
    if grid.unit != "s" or grid.rows.middles is None:
        return Findings("Cliffs are looked for in latencies along rows of numbers.", ())
    cliffs, reason = _cliffs(grid, seen)
    if cliffs:
        return _told_cliffs(grid, cliffs, what)
    return _told_steepest(grid, what, reason)


def _cliffs(grid: Grid, seen: Samples) -> tuple[list[tuple[int, Cliff]], str]:
    """(column, cliff), the greatest first; and what there is to say where there is none."""
    cliffs: list[tuple[int, Cliff]] = []
    reasons: list[str | None] = []
    for column, key in enumerate(grid.columns.numbers):
        points = seen.curve(key)
        if not points:
            continue
        found = find_cliffs(series_of(points, grid.question.statistic))
        reasons.append(found.too_few)
        cliffs += [(column, cliff) for cliff in found.cliffs]
    looked = sum(reason is None for reason in reasons)
    if looked:
        looked_in = f"No cliff found ({looked} of {len(reasons)} columns have enough data to look)"
        return sorted(cliffs, key=lambda one: -one[1].beyond), looked_in
    return [], "Too little data to look for cliffs" + (f" ({reasons[0]})" if reasons else "")


def _told_cliffs(grid: Grid, cliffs: list[tuple[int, Cliff]], what: str) -> Findings:
    middles = grid.rows.middles or ()
    found = []
    for column, cliff in cliffs:
        rows = middles.index(cliff.after), middles.index(cliff.before)
        trend = (1 + cliff.jump) / (1 + cliff.beyond) - 1
        says = (
            f"{what} jumps {_percent(cliff.jump)} {_between(grid, column, *rows)}: {format_seconds(cliff.from_s)} to"
            f" {format_seconds(cliff.to_s)} (n {cliff.n_after:,} and {cliff.n_before:,}), where its trend explains"
            f" {_percent(trend)}"
        )
        found.append(Finding(CLIFF, grid.rows.keys[rows[1]], grid.columns.keys[column], says))
    more = len(found) - TOLD
    ending = f" {more} more {'cliff is' if more == 1 else 'cliffs are'} outlined." if more > 0 else ""
    return Findings("".join(f"{one.says}. " for one in found[:TOLD]).strip() + ending, tuple(found))


def _told_steepest(grid: Grid, what: str, reason: str) -> Findings:
    step = steepest(grid)
    if step is None or step.lower.value is None or step.upper.value is None:
        return Findings(f"{reason}.", ())
    few = ", few samples" if step.lower.few or step.upper.few else ""
    says = (
        f"the steepest step of {what} is {_percent(step.jump)} {_between(grid, step.column, step.row, step.to_row)}:"
        f" {format_seconds(step.lower.value)} to {format_seconds(step.upper.value)} (n {step.lower.n:,} and"
        f" {step.upper.n:,}{few}), for {_percent(step.grown)} {grid.rows.name.replace('_', ' ')}"
    )
    place = grid.rows.keys[step.to_row], grid.columns.keys[step.column]
    return Findings(f"{reason}; {says}.", (Finding(STEEPEST, *place, says),))


def _between(grid: Grid, column: int, row: int, to_row: int) -> str:
    side = f"{grid.columns.name.replace('_', ' ')} {grid.columns.labels[column]}"
    return f"from {grid.rows.labels[row]} to {grid.rows.labels[to_row]} at {side}"


def _percent(share: float) -> str:
    return f"{share * 100:+.3g} %" if abs(share) < 10 else f"×{share + 1:.3g}"
