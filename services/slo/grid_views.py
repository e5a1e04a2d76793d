"""Grids and their cells as the API's answers: pure functions of a reader and checked parameters."""

from __future__ import annotations

from cliffwatch.records.figures import FIGURES
from cliffwatch.records.reader import RunReader
from cliffwatch.surface.bins import Axis, Key
from cliffwatch.surface.contrast import contrast
from cliffwatch.surface.drill import Place, requests_in, whereabouts
from cliffwatch.surface.findings import findings
from cliffwatch.surface.grid import Grid, Question, RowsSource
from services.slo.grid_models import (
    AxisItem,
    CellRequest,
    CellRequests,
    FindingItem,
    Findings,
    Heatmap,
    Heatmaps,
    RequestCell,
)
from services.slo.parameters import (
    CellParameters,
    FacetParameters,
    HeatmapParameters,
    SideParameters,
    label,
)
from services.slo.views import NO_DATA, known


def heatmap(run_id: str, reader: RunReader, asked: HeatmapParameters) -> Heatmap:
    """The heatmap's grid. Raises InputError where statistic and threshold, or the sides, do not go together."""
    (grid,) = RowsSource(reader).grids(Question(**asked.model_dump()))
    return _answer(run_id, grid)


def heatmaps(run_id: str, reader: RunReader, asked: FacetParameters) -> Heatmaps:
    """A grid for each value of the facet. Raises InputError as `heatmap` does."""
    grids = RowsSource(reader).grids(Question(**asked.model_dump()))
    return Heatmaps(
        run=run_id,
        facet=asked.facet,
        heatmaps=[_answer(run_id, grid) for grid in grids],
        says=[contrast(grid) for grid in grids],
    )


def found(run_id: str, reader: RunReader, asked: HeatmapParameters) -> Findings:
    """Cliffs of the heatmap along its rows, or its steepest step. Raises InputError as `heatmap` does."""
    question = Question(**asked.model_dump())
    seen = findings(reader, question, label(asked.metric))
    items = [FindingItem(kind=one.kind, row=str(one.row), column=str(one.column), says=one.says) for one in seen.found]
    return Findings(run=run_id, says=seen.says, found=items)


def cell(run_id: str, reader: RunReader, asked: CellParameters) -> CellRequests:
    """The requests of a cell. Raises InputError for a cell that is not in the grid."""
    place = Place(asked.row, asked.column, replica=asked.replica, from_s=asked.from_s, to_s=asked.to_s)
    page = requests_in(reader, _sides(asked), place, order=asked.order, offset=asked.offset, limit=asked.limit)
    return CellRequests(
        run=run_id,
        metric=asked.metric,
        label=label(asked.metric),
        unit=FIGURES[asked.metric].unit,
        n=page.n,
        counted=page.counted,
        offset=asked.offset,
        requests=[CellRequest.model_validate(one) for one in page.requests],
    )


def place_of(request_id: int, run_id: str, reader: RunReader, asked: SideParameters) -> RequestCell:
    """The cell of a request. Raises InputError where the phase has no request of that id."""
    found = whereabouts(reader, _sides(asked), request_id)
    return RequestCell(
        run=run_id,
        request_id=request_id,
        phase=found.phase,
        time_s=found.time_s,
        replica=found.replica,
        row=_text(found.keys["rows"]),
        column=_text(found.keys["columns"]),
        row_value=_text(found.values["rows"]),
        column_value=_text(found.values["columns"]),
    )


def _sides(asked: SideParameters) -> Question:
    given = asked.model_dump(include=set(SideParameters.model_fields))
    return Question(statistic="max", **given)


def _text(key: Key | None) -> str | None:
    return None if key is None else str(key)


def _axis(axis: Axis) -> AxisItem:
    return AxisItem(
        name=axis.name,
        words=axis.name.replace("_", " "),
        unit=axis.unit,
        scale=axis.scale,
        why=axis.why,
        keys=[str(key) for key in axis.keys],
        labels=list(axis.labels),
        middles=None if axis.middles is None else list(axis.middles),
        spans=list(axis.spans),
    )


def _answer(run_id: str, grid: Grid) -> Heatmap:
    asked, cells = grid.question, grid.cells
    return Heatmap(
        run=run_id,
        metric=asked.metric,
        label=label(asked.metric),
        unit=grid.unit,
        statistic=asked.statistic,
        phase=asked.phase,
        facet=grid.facet,
        rows=_axis(grid.rows),
        columns=_axis(grid.columns),
        values=[[known(one.value) for one in row] for row in cells],
        lows=[[known(one.low) for one in row] for row in cells],
        highs=[[known(one.high) for one in row] for row in cells],
        counts=[[one.n for one in row] for row in cells],
        few=[[one.few for one in row] for row in cells],
        n=grid.n,
        unplaced=grid.unplaced,
        note=None if grid.n else NO_DATA,
    )
