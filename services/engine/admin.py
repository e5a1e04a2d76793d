"""`/admin`: changes to a running engine, for clients on this machine that are no web page."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs

import msgspec

from cliffwatch.config import ConfigModel, check_config
from cliffwatch.errors import InputError
from services.engine.drills.kinds import AnyFault, Fault
from services.engine.faults import RequestFault
from services.engine.http import Connection, Request
from services.engine.internals import exposed
from services.engine.options import LIVE

if TYPE_CHECKING:
    from services.engine.faces.face import Endpoint, Routes
    from services.engine.service import Service

PREFIX = "/admin/"


class Faults(Protocol):
    """Who can be told of faults."""

    def plan(self, fault: Fault) -> int:
        """One fault more; returns its number. Raises InputError."""

    def clear(self, number: int | None = None) -> int:
        """Forget one, or all of them; returns how many there were of it."""

    def listed(self) -> list[dict[str, Any]]:
        """Each of them."""


class _Body(ConfigModel):
    fault: AnyFault


def local(endpoint: Endpoint) -> Endpoint:
    """An endpoint that answers 403 to other machines, and to browsers: a page anywhere could ask them to ask."""

    def guarded(service: Service, connection: Connection, request: Request) -> None:
        peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
        if not peer or not ip_address(peer[0]).is_loopback:
            raise RequestFault(403, "/admin is for clients on this machine.")
        if "origin" in request.headers:
            raise RequestFault(403, "/admin is not for web pages.")
        try:
            endpoint(service, connection, request)
        except InputError as error:
            raise RequestFault(400, str(error), param=error.field) from error

    return guarded


def _list(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    connection.respond(200, msgspec.json.encode({"faults": service.drilled.listed()}))


def _read(request: Request) -> Any:
    try:
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestFault(400, f"The body is not JSON: {error}") from error


def _plan(service: Service, connection: Connection, request: Request) -> None:
    number = service.drilled.plan(check_config({"fault": _read(request)}, _Body, source="body").fault)
    connection.respond(201, msgspec.json.encode({"id": number}))


def _clear(service: Service, connection: Connection, request: Request) -> None:
    asked = parse_qs(request.target.partition("?")[2], keep_blank_values=True).get("id")
    if asked is not None and not (len(asked) == 1 and asked[0].isascii() and asked[0].isdigit() and len(asked[0]) < 10):
        raise InputError("is no number of a fault", field="id", value=",".join(asked), allowed="one that GET lists")
    cleared = service.drilled.clear(int(asked[0]) if asked else None)
    if asked and not cleared:
        raise RequestFault(404, f"No fault has the number {asked[0]}.")
    connection.respond(200, msgspec.json.encode({"cleared": cleared}))


def _options(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    said = {"options": service.engine.tuned.options.model_dump(), "live": LIVE}
    connection.respond(200, msgspec.json.encode(said))


def _change(service: Service, connection: Connection, request: Request) -> None:
    changes = _read(request)
    if not isinstance(changes, dict):
        raise InputError("must be an object of options", field="body", value=changes, allowed=", ".join(LIVE))
    service.engine.tuned.change(changes)
    _options(service, connection, request)


def _metrics(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    connection.respond(200, exposed(service.engine.scheduler), content_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES: Routes = {
    "/admin/metrics": {"GET": local(_metrics)},
    "/admin/options": {"GET": local(_options), "POST": local(_change)},
    "/admin/faults": {"GET": local(_list), "POST": local(_plan), "DELETE": local(_clear)},
}
