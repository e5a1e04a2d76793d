"""The API: what is asked for, checked; who computes it is `views`, when is `service`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from prometheus_client import exposition

from cliffwatch import __version__
from cliffwatch.records.figures import FIGURES
from cliffwatch.roofline.hardware import hardware_names
from cliffwatch.roofline.model import model_names
from cliffwatch.surface.cells import STATISTICS
from cliffwatch.surface.dimensions import DIMENSIONS
from cliffwatch.surface.use import PARTS
from services.slo import views
from services.slo.encoded import Encoded, encoded
from services.slo.engine_side import EngineSides, add_engine
from services.slo.grid_routes import add_grids
from services.slo.live_metrics import SloCollector
from services.slo.live_routes import add_live
from services.slo.metrics import ServiceMetrics, gather
from services.slo.models import (
    Attainment,
    Choices,
    DimensionItem,
    Health,
    MetricItem,
    Outcomes,
    Percentiles,
    RunDetail,
    RunList,
    Timeline,
)
from services.slo.parameters import (
    ListParameters,
    MetricParameters,
    NoParameters,
    PhaseParameters,
    RunId,
    TimelineParameters,
    label,
)
from services.slo.problems import refusals
from services.slo.service import Service, content_answer
from services.slo.shared import Shared
from services.slo.surface_routes import add_surfaces
from services.slo.watcher import Watcher


def router(
    service: Service,
    metrics: ServiceMetrics,
    sides: EngineSides,
    watcher: Watcher | None = None,
    webhook_token: str | None = None,
) -> APIRouter:
    """Every route of the API."""
    api = APIRouter()
    _add_service(api, service, metrics, watcher)
    _add_runs(api, service)
    _add_figures(api, service)
    add_grids(api, service)
    add_surfaces(api, service)
    add_engine(api, service, sides)
    add_live(api, watcher, webhook_token)
    return api


def _add_service(api: APIRouter, service: Service, metrics: ServiceMetrics, watcher: Watcher | None) -> None:
    scrapes = Shared()

    @api.get("/healthz", tags=["service"], responses=refusals(422))
    async def health(_asked: Annotated[NoParameters, Query()]) -> Health:
        """The service answers."""
        return Health(status="ok", version=__version__)

    @api.get("/metrics", tags=["service"], response_class=Response)
    async def prometheus(request: Request) -> Response:
        """The newest runs, and the service itself, for Prometheus."""
        encode, media_type = exposition.choose_encoder(request.headers.get("accept", ""))

        async def gathered() -> bytes:
            text = encode(await gather(service)) + encode(metrics.registry)
            if watcher is not None:
                text += await watcher.told(media_type, lambda seen: encode(SloCollector(seen)))
            return text.replace(b"# EOF\n", b"", text.count(b"# EOF\n") - 1)

        return Response(await scrapes.get(media_type, gathered), media_type=media_type)

    @api.get("/v1/metrics", tags=["service"], responses=refusals(422))
    async def choices(_asked: Annotated[NoParameters, Query()]) -> Choices:
        """The metrics, statistics and dimensions that can be asked for."""
        items = [
            MetricItem(name=name, label=label(name), unit=one.unit, help=one.help) for name, one in FIGURES.items()
        ]
        sides = [DimensionItem(name=name, unit=one.unit, help=one.help) for name, one in DIMENSIONS.items()]
        return Choices(
            metrics=items,
            dimensions=sides,
            statistics=list(STATISTICS),
            hardware=hardware_names(),
            models=model_names(),
            parts=list(PARTS),
        )


def _add_runs(api: APIRouter, service: Service) -> None:
    @api.get("/v1/runs", tags=["runs"], response_model=RunList, responses=refusals(422))
    async def runs(request: Request, asked: Annotated[ListParameters, Query()]) -> Response:
        """The runs in the folder, newest first, damaged ones included."""

        def list_runs() -> Encoded:
            found = service.store.list()
            return encoded(RunList(total=len(found), runs=[views.item(run) for run in found[: asked.limit]]))

        return content_answer(request, await service.answers.look(("runs", asked.limit), list_runs))

    @api.get("/v1/runs/{run_id}", tags=["runs"], response_model=RunDetail, responses=refusals(404, 409, 422, 503))
    async def run(request: Request, run_id: RunId, _asked: Annotated[NoParameters, Query()]) -> Response:
        """One run: what it was, how far it has come, whether to trust it."""
        listed = await service.answers.look(("run", run_id), lambda: service.store.listed(service.store.find(run_id)))
        counted = await service.compute(listed.folder, "rows", views.rows)
        return content_answer(request, encoded(views.detail(listed, counted)))


def _add_figures(api: APIRouter, service: Service) -> None:
    refused = refusals(404, 409, 422, 503)

    @api.get("/v1/runs/{run_id}/attainment", tags=["figures"], response_model=Attainment, responses=refused)
    async def attainment(request: Request, run_id: RunId, asked: Annotated[PhaseParameters, Query()]) -> Response:
        """Every objective: attainment with its interval and n, met, missed or too few data; goodput and price."""

        return await service.judged(request, run_id, asked.phase, views.attainment)

    @api.get("/v1/runs/{run_id}/outcomes", tags=["figures"], response_model=Outcomes, responses=refused)
    async def outcomes(request: Request, run_id: RunId, asked: Annotated[PhaseParameters, Query()]) -> Response:
        """How the requests ended, and the most frequent errors."""

        return await service.judged(request, run_id, asked.phase, views.outcomes)

    @api.get("/v1/runs/{run_id}/percentiles", tags=["figures"], response_model=Percentiles, responses=refused)
    async def percentiles(request: Request, run_id: RunId, asked: Annotated[MetricParameters, Query()]) -> Response:
        """The distribution of a metric over the successful requests of a phase."""
        return await service.viewed(request, run_id, asked, views.percentiles)

    @api.get("/v1/runs/{run_id}/timeline", tags=["figures"], response_model=Timeline, responses=refused)
    async def timeline(request: Request, run_id: RunId, asked: Annotated[TimelineParameters, Query()]) -> Response:
        """P50 and P95 of a metric, and requests and failures, over the run."""
        return await service.viewed(request, run_id, asked, views.timeline)
