"""The steepest step of a grid: between which neighbouring rows its statistic grows the most for what the row grows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.surface.cells import Cell
from cliffwatch.surface.grid import Grid


@dataclass(frozen=True, slots=True)
class Step:
    """From row `row` to the next one with a value, `to_row`, in `column` (numbers of the grid).

    Attributes:
        lower, upper: the cells.
        jump: upper / lower - 1.
        grown: by how much the row's dimension grew, likewise.
        slope: ln of the one ratio over ln of the other: 1 is in proportion, 2 is a square.
    """

    row: int
    to_row: int
    column: int
    lower: Cell
    upper: Cell
    jump: float
    grown: float
    slope: float


def steepest(grid: Grid) -> Step | None:
    """The step with the greatest slope, of those where the statistic grows by more than the intervals explain.

    Steps between cells with few samples count only where no other does. None where nothing grows, or rows are words.
    """
    found = list(_steps(grid))
    sure = [step for step in found if not (step.lower.few or step.upper.few)]
    return max(sure or found, key=lambda step: step.slope, default=None)


def _steps(grid: Grid) -> Iterator[Step]:
    places = grid.rows.middles
    if places is None or grid.unit != "s":
        return
    for column in range(len(grid.columns.keys)):
        known = [(row, line[column]) for row, line in enumerate(grid.cells) if line[column].value and places[row] > 0]
        for (row, lower), (to_row, upper) in pairwise(known):
            if lower.value is None or upper.value is None or upper.value <= lower.value or _overlap(lower, upper):
                continue
            jump, grown = upper.value / lower.value, places[to_row] / places[row]
            slope = math.log(jump) / math.log(grown)
            yield Step(row, to_row, column, lower, upper, jump - 1, grown - 1, slope)


def _overlap(lower: Cell, upper: Cell) -> bool:
    return lower.high is not None and upper.low is not None and lower.high >= upper.low
