"""The API of surfaces: what an untried point would cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from services.slo import surface_views
from services.slo.parameters import AtParameters, RunId
from services.slo.problems import refusals
from services.slo.service import Service
from services.slo.surface_models import SurfaceAnswer


def add_surfaces(api: APIRouter, service: Service) -> None:
    """The routes of surfaces."""
    refused = refusals(404, 409, 422, 503)

    @api.get("/v1/runs/{run_id}/surface/at", tags=["figures"], response_model=SurfaceAnswer, responses=refused)
    async def surface_at(request: Request, run_id: RunId, asked: Annotated[AtParameters, Query()]) -> Response:
        """A latency at an untried length and batch, with an interval; refused outside what was measured."""
        return await service.viewed(request, run_id, asked, surface_views.at)
