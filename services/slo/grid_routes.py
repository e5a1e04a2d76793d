"""The API of grids: heatmaps, the requests of a cell, the cell of a request."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from services.slo import grid_views
from services.slo.grid_models import CellRequests, Findings, Heatmap, Heatmaps, RequestCell
from services.slo.parameters import CellParameters, FacetParameters, HeatmapParameters, RunId, SideParameters
from services.slo.problems import refusals
from services.slo.service import Service

RequestId = Annotated[int, Path(description="A request's id, as the cells list it.", ge=0, le=2**62)]


def add_grids(api: APIRouter, service: Service) -> None:
    """The routes of grids."""
    refused = refusals(404, 409, 422, 503)

    @api.get("/v1/runs/{run_id}/heatmap", tags=["figures"], response_model=Heatmap, responses=refused)
    async def heatmap(request: Request, run_id: RunId, asked: Annotated[HeatmapParameters, Query()]) -> Response:
        """A statistic of a metric over two dimensions of the traffic, with n and interval of each cell."""
        return await service.viewed(request, run_id, asked, grid_views.heatmap)

    @api.get("/v1/runs/{run_id}/heatmaps", tags=["figures"], response_model=Heatmaps, responses=refused)
    async def heatmaps(request: Request, run_id: RunId, asked: Annotated[FacetParameters, Query()]) -> Response:
        """One heatmap for each value of a third dimension, such as with and without a shared prefix."""
        return await service.viewed(request, run_id, asked, grid_views.heatmaps)

    @api.get("/v1/runs/{run_id}/findings", tags=["figures"], response_model=Findings, responses=refused)
    async def findings(request: Request, run_id: RunId, asked: Annotated[HeatmapParameters, Query()]) -> Response:
        """The cliffs of a heatmap along its rows in words and by place, or its steepest step."""
        return await service.viewed(request, run_id, asked, grid_views.found)

    @api.get("/v1/runs/{run_id}/heatmap/cell", tags=["figures"], response_model=CellRequests, responses=refused)
    async def cell(request: Request, run_id: RunId, asked: Annotated[CellParameters, Query()]) -> Response:
        """The requests of one cell, a page of them: when they were due, how long they took, how they ended."""
        return await service.viewed(request, run_id, asked, grid_views.cell)

    @api.get(
        "/v1/runs/{run_id}/requests/{request_id}/cell", tags=["figures"], response_model=RequestCell, responses=refused
    )
    async def request_cell(
        request: Request, run_id: RunId, request_id: RequestId, asked: Annotated[SideParameters, Query()]
    ) -> Response:
        """Where a request lies: its time, replica, row and column."""
        return await service.viewed(request, run_id, asked, partial(grid_views.place_of, request_id))
