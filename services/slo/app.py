"""The application: routes, the page's files, error shape and response headers put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from cliffwatch import __version__
from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.slo.spec import SloFile
from services.slo import problems, routes
from services.slo.engine_side import EngineSides
from services.slo.metrics import ServiceMetrics
from services.slo.middleware import ResponseMiddleware
from services.slo.runbooks import add_runbooks
from services.slo.service import Service
from services.slo.store import RunStore
from services.slo.watcher import Watcher

PAGE = Path(__file__).parent / "static"
LOOK = Path(str(files("cliffwatch.report"))) / "assets"  # the look that page and HTML report share


def create_app(
    store: RunStore,
    slo: SloFile | None = None,
    *,
    watcher: Watcher | None = None,
    webhook_token: str | None = None,
    server: Prometheus | None = None,
    runbooks: Mapping[str, str] | None = None,
) -> FastAPI:
    """The SLO service over `store`; `slo`, where given, judges every run in place of the run's own SLO file.

    `watcher`, where given, is what it shows of SLOs on Prometheus; Alertmanager must then send `webhook_token`, if any.
    `server`, where given, tells the engine's side of each run; `runbooks` are pages by their name.
    """
    service = Service(store, slo)
    metrics = ServiceMetrics()
    sides = EngineSides(service, server)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        service.answers.close()
        sides.close()
        if watcher is not None:
            watcher.close()

    app = FastAPI(
        title="cliffwatch SLO service",
        summary="Attainment, percentiles and latency surfaces of load runs, live while a run goes on.",
        version=__version__,
        docs_url=None,  # both load scripts from another host
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    problems.install(app)
    app.include_router(routes.router(service, metrics, sides, watcher, webhook_token))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/slos", include_in_schema=False)
    async def slos_page() -> FileResponse:
        return FileResponse(PAGE / "slos.html", headers={"Cache-Control": "no-cache"})

    if runbooks is not None:
        add_runbooks(app, runbooks)
    app.mount("/static", StaticFiles(directory=PAGE))
    app.mount("/assets", StaticFiles(directory=LOOK))
    app.add_middleware(ResponseMiddleware, observe=metrics.observe)
    return app
