"""Pictures of a run's surfaces for the report: its knees, also against another run's, and its use of the hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from cliffwatch.errors import InputError
from cliffwatch.records.reader import RunReader
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.cells import Cell
from cliffwatch.surface.grid import Source
from cliffwatch.surface.knees import KneeCurve, Knees, knees, moves
from cliffwatch.surface.measured import read_cells
from cliffwatch.surface.use import PARTS, Share, UsedCell, UseTable, laid, use
from cliffwatch.surface.words import said_knee, said_move, said_use

SHARES = {"decode": ("bandwidth", "Memory bandwidth used"), "prefill": ("arithmetic", "Arithmetic used (MFU)")}


@dataclass(frozen=True, slots=True)
class Picture:
    """A title, what it says, and the data that `report.js` hands to its renderer."""

    title: str
    says: str
    plot: Mapping[str, Any]


def knee(connection: duckdb.DuckDBPyConnection, label: str, figure: str, against: RunReader | None) -> Picture | None:
    """The curve along what varies that has the surest knee, of the measured phase; None without enough points on any.

    With another run, its curve too, and how far the knee moved from there.
    """
    found = knees(connection, figure)
    curve = found.surest
    if curve is None:
        return None
    runs = {"this run" if against else label: curve}
    says = [f"{found.axis.replace('_', ' ')} {said_knee(curve.knee, figure)}"]
    if against is not None:
        name, theirs = against.manifest.run_id, knees(against, figure, found.axis)
        runs.update((name, one) for one in theirs.curves if one.of == curve.of)
        says.append(_moved(name, curve.of, theirs, found))
    of = "" if len(found.curves) == 1 else f", {found.by.replace('_', ' ')} {curve.of}"
    axis = found.axis.replace("_", " ")
    return Picture(f"{label} along {axis}{of}", ". ".join(says), _curves(label, axis, runs))


def _moved(name: str, of: str, theirs: Knees, mine: Knees) -> str:
    told = dict(moves(theirs, mine)).get(of)
    return (
        f"No knee in both runs, so no move from {name} is told"
        if told is None
        else f"Moved by {said_move(told)} from {name}"
    )


def _curves(label: str, axis: str, runs: Mapping[str, KneeCurve]) -> dict[str, Any]:
    lines = list(runs.values())
    cells = [{at.x: Cell(at.value, at.n, False, at.low, at.high) for at in one.points} for one in lines]
    breaks = [(c, each) for c, one in enumerate(lines) for each in one.knee.breaks]
    places = sorted({x for line in cells for x in line})
    nothing = Cell(None, 0, False)
    return {
        "kind": "curves",
        "label": f"{label} along {axis}, with straight pieces through it",
        "x": places,
        "xLabels": [f"{x:.4g}" for x in places],
        "xLabel": axis,
        "columns": list(runs),
        "cells": [[asdict(line.get(x, nothing)) for line in cells] for x in places],
        "pieces": [{"c": c, "corners": one.corners} for c, one in enumerate(lines)],
        "breaks": [{"c": c, "label": f"{each.at:.3g}", **asdict(each)} for c, each in breaks],
        "unit": "s",
        "yLabel": label,
    }


def used(source: Source, deployment: Deployment, cached: bool | None) -> list[Picture]:
    """Shares of bandwidth in decoding and of arithmetic in prefill; parts that were not measured are left out.

    Raises:
        InputError: neither part can be told.
    """
    found, reasons = [], []
    for part, (share, words) in SHARES.items():
        try:
            cells = read_cells(source, PARTS[part].metric, cached=cached)
            shares = use(deployment, cells, part)
        except InputError as error:
            reasons.append(error)
            continue
        title = f"{words}, {part}, by {cells.metric}, cache {cells.cache}"
        found.append(Picture(title, "; ".join(said_use(deployment, shares)), _heatmap(title, laid(shares), share)))
    if not found:
        raise reasons[0]
    return found


def _heatmap(title: str, table: UseTable, share: str) -> dict[str, Any]:
    return {
        "kind": "heatmap",
        "caption": title,
        "corner": "input",
        "rows": table.rows,
        "columns": [f"×{batch}" for batch in table.batches],
        "cells": [[asdict(_cell(one, share)) for one in line] for line in table.cells],
        "unit": "share",
        "empty": "Output lengths are not known.",
    }


def _cell(one: UsedCell | None, share: str) -> Cell:
    known: Share | None = None if one is None else getattr(one, share)
    n = 0 if one is None else one.n
    return Cell(None, n, False) if known is None else Cell(known.value, n, False, known.low, known.high)
