"""Surface models by cross-validation on measurements: `python -m benchmarks.surface_models FOLDER`.

FOLDER holds `grid_none.jsonl.gz` and `grid_prefix.jsonl.gz`: closed grids of length and batch without and with the
prefix cached. Whole cells are held out, with all their repeats: one in turn (`leave_cell_out`), or every other
(`checkerboard`); those that lie within the cells left are predicted. The aim, for the model in use: median error at
most 5 %, P95 at most 15 %. Writes `benchmarks/results/surface_models.json`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._saved import conclude
from cliffwatch.surface.cells import Array
from cliffwatch.surface.measured import MeasuredCells, read_cells
from cliffwatch.surface.model import WINNER
from cliffwatch.surface.model_candidates import CANDIDATES
from cliffwatch.surface.model_check import Held, checkerboard, leave_cell_out
from cliffwatch.surface.source import open_source

GRIDS = ("grid_none", "grid_prefix")
METRICS = ("ttft_s", "itl_s", "e2e_s")
WAYS = {"leave_cell_out": leave_cell_out, "checkerboard": checkerboard}
AIM_PERCENT = {"median": 5.0, "p95": 15.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    compared = [_compare(folder, grid, metric) for grid in GRIDS for metric in METRICS]
    missed = [
        f"{one['grid']} {one['metric']} {way}: {name} {errors[name]} > {most}"
        for one in compared
        for way, errors in one["models"][WINNER].items()
        for name, most in AIM_PERCENT.items()
        if errors[name] > most
    ]
    result = {"aim_percent": AIM_PERCENT, "in_use": WINNER, "missed": missed, "compared": compared}
    conclude("surface_models", result, passed=not missed)


def _compare(folder: Path, grid: str, metric: str) -> dict[str, Any]:
    cells = read_cells(open_source(folder / f"{grid}.jsonl.gz"), metric)
    return {
        "grid": grid,
        "metric": metric,
        "cells": len(cells.n),
        "requests": int(cells.n.sum()),
        "repeats_differ_percent": _repeats(cells),
        "models": {
            name: {way: _errors(check(cells, fit)) for way, check in WAYS.items()} for name, fit in CANDIDATES.items()
        },
    }


def _repeats(cells: MeasuredCells) -> dict[str, float] | None:
    """How far the second repeat of a cell lies from the first; None where each was measured once."""
    pairs = [abs(values[1] / values[0] - 1) for values in cells.values_s if values.size > 1]
    return _percent(np.array(pairs)) if pairs else None


def _errors(held: Held) -> dict[str, float]:
    return {**_percent(held.relative), "cells": held.log_errors.size, "unanswered": held.unanswered}


def _percent(shares: Array) -> dict[str, float]:
    return {"median": round(100 * float(np.median(shares)), 2), "p95": round(100 * float(np.quantile(shares, 0.95)), 2)}


if __name__ == "__main__":
    main()
