"""The API of surfaces: untried points, use of the hardware, knees, and how far they moved between two runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from cliffwatch.surface.knees import Knees
from services.slo import surface_views
from services.slo.encoded import encoded
from services.slo.parameters import AtParameters, KneeParameters, MoveParameters, RunId, UseParameters
from services.slo.problems import refusals
from services.slo.service import Service, content_answer
from services.slo.surface_models import KneeCurves, KneeMoves, SurfaceAnswer, UseAnswer


def add_surfaces(api: APIRouter, service: Service) -> None:
    """The routes of surfaces."""
    refused = refusals(404, 409, 422, 503)

    @api.get("/v1/runs/{run_id}/surface/at", tags=["figures"], response_model=SurfaceAnswer, responses=refused)
    async def surface_at(request: Request, run_id: RunId, asked: Annotated[AtParameters, Query()]) -> Response:
        """A latency at an untried length and batch, with an interval; refused outside what was measured."""
        return await service.viewed(request, run_id, asked, surface_views.at)

    @api.get("/v1/runs/{run_id}/surface/use", tags=["figures"], response_model=UseAnswer, responses=refused)
    async def surface_use(request: Request, run_id: RunId, asked: Annotated[UseParameters, Query()]) -> Response:
        """Shares of the hardware's arithmetic and memory bandwidth that each length and batch used, by the roofline."""
        return await service.viewed(request, run_id, asked, surface_views.used)

    async def knees_of(run_id: str, asked: KneeParameters) -> Knees:
        folder = await service.find(run_id)
        question = f"knees {asked.metric} {asked.axis}"
        return await service.compute(folder, question, lambda reader: surface_views.knees_of(reader, asked))

    @api.get("/v1/runs/{run_id}/knees", tags=["figures"], response_model=KneeCurves, responses=refused)
    async def knees(request: Request, run_id: RunId, asked: Annotated[KneeParameters, Query()]) -> Response:
        """Where curves of a metric along an axis begin to grow in another way, with points and fitted pieces."""
        return content_answer(request, encoded(surface_views.curves_of(run_id, await knees_of(run_id, asked))))

    @api.get("/v1/runs/{run_id}/knees/moves", tags=["figures"], response_model=KneeMoves, responses=refused)
    async def knee_moves(request: Request, run_id: RunId, asked: Annotated[MoveParameters, Query()]) -> Response:
        """How far this run's knees are from another run's, along the same axis."""
        mine = await knees_of(run_id, asked)
        theirs = await knees_of(asked.against, asked.model_copy(update={"axis": mine.axis}))
        return content_answer(request, encoded(surface_views.moves_between(run_id, asked.against, mine, theirs)))
