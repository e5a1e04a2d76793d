"""What a dimension changes, in words: such as a shared prefix against none, at each length."""

from __future__ import annotations

from itertools import combinations

from cliffwatch.surface.cells import Cell
from cliffwatch.surface.grid import Grid
from cliffwatch.units import format_seconds


def contrast(grid: Grid) -> str | None:
    """The row where two columns of a latency differ the most, as times; None where no row has a value in two.

    Differences within the intervals are not told as such: it says where the intervals overlap.
    """
    found = [
        (max(one.value, other.value) / min(one.value, other.value), r, a, b)
        for r, line in enumerate(grid.cells)
        for (a, one), (b, other) in combinations(enumerate(line), 2)
        if one.value and other.value and min(one.value, other.value) > 0
    ]
    if grid.unit != "s" or not found:
        return None
    ratio, r, a, b = max(found)
    slow, fast = (a, b) if (grid.cells[r][a].value or 0) >= (grid.cells[r][b].value or 0) else (b, a)
    slower, faster = grid.cells[r][slow], grid.cells[r][fast]
    names = grid.columns.labels
    said = (
        f"{grid.columns.name} {names[fast]} against {names[slow]}: the most at {grid.rows.labels[r]},"
        f" {format_seconds(faster.value)} against {format_seconds(slower.value)}, {ratio:.3g} times less"
        f" (n {faster.n:,} and {slower.n:,})"
    )
    return said + _surety(faster, slower)


def _surety(faster: Cell, slower: Cell) -> str:
    if faster.high is None or slower.low is None or faster.few or slower.few:
        return "; few samples"
    return "; within their intervals" if faster.high >= slower.low else ""
