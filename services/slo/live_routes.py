"""The API over SLOs that are watched on Prometheus, and Alertmanager's webhook."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from cliffwatch.errors import InputError
from cliffwatch.slo.live.alert_events import read_webhook
from cliffwatch.slo.live.history import Grid, ObjectiveHistory
from services.slo import live_views as views
from services.slo.encoded import Encoded, encoded
from services.slo.live_models import Alerts, History, Received, SloDetail, SloList
from services.slo.parameters import HistoryParameters, NoParameters
from services.slo.problems import NotAllowedError, TooLargeError, UnknownSloError, refusals
from services.slo.service import content_answer
from services.slo.watcher import Watcher

MAX_BODY = 1 << 20
SloName = Annotated[str, Path(description="An SLO's name, as /v1/slos lists it.")]


def add_live(api: APIRouter, watcher: Watcher | None, webhook_token: str | None) -> None:
    """Routes that answer whether or not anything is watched."""
    _add_slos(api, watcher)
    _add_alerts(api, watcher, webhook_token)


def _watching(watcher: Watcher | None) -> Watcher:
    if watcher is None:
        raise UnknownSloError(views.NOT_WATCHED, field="slo")
    return watcher


def _add_slos(api: APIRouter, watcher: Watcher | None) -> None:
    @api.get("/v1/slos", tags=["slos"], response_model=SloList, responses=refusals(422))
    async def slos(request: Request, _asked: Annotated[NoParameters, Query()]) -> Response:
        """Every SLO that is watched, with the worst of each objective."""
        if watcher is None:
            return content_answer(request, encoded(views.slos(None)))
        return content_answer(request, await watcher.told("list", lambda seen: encoded(views.slos(seen))))

    @api.get("/v1/slos/{name}", tags=["slos"], response_model=SloDetail, responses=refusals(404, 422))
    async def slo(request: Request, name: SloName, _asked: Annotated[NoParameters, Query()]) -> Response:
        """One SLO: every group's attainment with its interval and n, budget left, burn rates, forecast."""
        watching = _watching(watcher)
        watching.known(name)
        return content_answer(request, await watching.told(f"slo {name}", lambda seen: encoded(views.slo(name, seen))))

    @api.get("/v1/slos/{name}/history", tags=["slos"], response_model=History, responses=refusals(404, 422, 503))
    async def history(request: Request, name: SloName, asked: Annotated[HistoryParameters, Query()]) -> Response:
        """Budget left and burn rates over time."""

        def view(grid: Grid, found: tuple[ObjectiveHistory, ...]) -> Encoded:
            return encoded(views.history(name, grid, found))

        return content_answer(request, await _watching(watcher).history(name, asked.span_s, asked.points, view))


def _add_alerts(api: APIRouter, watcher: Watcher | None, webhook_token: str | None) -> None:
    @api.get("/v1/alerts", tags=["slos"], response_model=Alerts, responses=refusals(404, 422))
    async def alerts(request: Request, _asked: Annotated[NoParameters, Query()]) -> Response:
        """What fires now by these figures and by Prometheus, and the events of the last day."""
        return content_answer(request, await _watching(watcher).alerts(lambda *told: encoded(views.alerts(*told))))

    @api.post("/v1/alertmanager", tags=["slos"], responses=refusals(401, 404, 413, 422))
    async def alertmanager(request: Request) -> Received:
        """Takes Alertmanager's webhook; a notification that comes twice counts once."""
        watching = _watching(watcher)
        _refuse_strangers(request, webhook_token)
        events = read_webhook(await _body(request))
        watching.log.take(events)
        return Received(alerts=len(events))


def _refuse_strangers(request: Request, token: str | None) -> None:
    """Raises NotAllowedError without the token, InputError unless it is JSON (which no other site's page can send)."""
    given = request.headers.get("authorization", "")
    if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise NotAllowedError("needs the bearer token that the service was started with", field="Authorization")
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise InputError("is no JSON", field="Content-Type", value=kind, allowed="application/json")


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            raise TooLargeError("is too large", field="body", allowed=f"up to {MAX_BODY} bytes")
    return bytes(body)
