"""Grids as documents for machines: JSON and CSV, a cell a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from cliffwatch.surface.bins import Axis, Key
from cliffwatch.surface.cells import Cell
from cliffwatch.surface.grid import Grid

HEAD = ("facet", "row", "row_end", "column", "column_end", "value", "low", "high", "n", "few", "unit")


def document(grids: Sequence[Grid]) -> dict[str, Any]:
    """All grids of one question; what is not known is null."""
    question = grids[0].question
    return {
        "metric": question.metric,
        "statistic": question.statistic,
        "unit": question.unit,
        "phase": question.phase,
        "threshold": question.threshold,
        "rows": _axis(grids[0].rows),
        "columns": _axis(grids[0].columns),
        "facet": question.facet,
        "grids": [
            {
                "facet": grid.facet,
                "n": grid.n,
                "unplaced": grid.unplaced,
                "notes": list(grid.notes),
                "cells": [_cell(*one) for one in _cells(grid)],
            }
            for grid in grids
        ],
    }


def comma_separated(grids: Sequence[Grid]) -> str:
    """A row a cell that has requests; what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for grid in grids:
        row_end, column_end = _ends(grid.rows), _ends(grid.columns)
        for row, column, cell in _cells(grid):
            writer.writerow(
                (
                    grid.facet, row, row_end[row], column, column_end[column], cell.value, cell.low, cell.high, cell.n,
                    str(cell.few).lower(), grid.unit,
                )
            )  # fmt: skip
    return out.getvalue()


def _cells(grid: Grid) -> Iterator[tuple[Key, Key, Cell]]:
    """(row, column, cell) of those that have requests."""
    for row, line in zip(grid.rows.keys, grid.cells, strict=True):
        for column, cell in zip(grid.columns.keys, line, strict=True):
            if cell.n:
                yield row, column, cell


def _cell(row: Key, column: Key, cell: Cell) -> dict[str, Any]:
    return {
        "row": row, "column": column, "value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n,
        "few": cell.few,
    }  # fmt: skip


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "name": axis.name, "unit": axis.unit, "scale": axis.scale, "why": axis.why, "keys": list(axis.keys),
        "labels": list(axis.labels), "edges": list(axis.edges) or None,
    }  # fmt: skip


def _ends(axis: Axis) -> dict[Key, float | None]:
    """The upper edge of each bin; None where it is a value."""
    return dict(zip(axis.keys, axis.edges[1:] or [None] * len(axis.keys), strict=True))
