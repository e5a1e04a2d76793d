"""Cached against uncached in words."""

from __future__ import annotations

import pytest

from cliffwatch.surface.bins import Axis
from cliffwatch.surface.cells import Cell
from cliffwatch.surface.contrast import contrast
from cliffwatch.surface.grid import Grid, Question

ROWS = Axis("input_tokens", "tokens", "values", "", (1024, 32_768), (1024, 32_768))
STATES = Axis("cache", "", "values", "", ("none", "prefix"), ("none", "prefix"))


def grid(*lines: tuple[Cell, Cell], statistic: str = "p50") -> Grid:
    return Grid(Question("ttft_s", statistic, columns="cache"), ROWS, STATES, lines, 0, 0)


def test_it_names_the_row_where_it_matters_most() -> None:
    sure = [Cell(0.04, 30, False, 0.03, 0.05), Cell(0.03, 30, False, 0.028, 0.032)]
    apart = [Cell(1.2, 40, False, 1.1, 1.3), Cell(0.048, 40, False, 0.04, 0.05)]
    assert contrast(grid((sure[0], sure[1]), (apart[0], apart[1]))) == (
        "cache prefix against none: the most at 32k, 48 ms against 1.2 s, 25 times less (n 40 and 40)"
    )


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Cell(0.035, 30, False, 0.03, 0.045), "; within their intervals"),
        (Cell(0.01, 2, True), "; few samples"),
    ],
)
def test_it_says_how_sure_that_is(other: Cell, said: str) -> None:
    none = Cell(None, 0, True)
    text = contrast(grid((Cell(0.05, 30, False, 0.04, 0.06), other), (none, none)))
    assert text is not None and text.endswith(said)


def test_nothing_to_set_against_is_not_told() -> None:
    none = Cell(None, 0, True)
    assert contrast(grid((Cell(0.05, 30, False), none), (none, none))) is None
    assert contrast(grid((Cell(5.0, 5, False), Cell(9.0, 9, False)), (none, none), statistic="count")) is None
