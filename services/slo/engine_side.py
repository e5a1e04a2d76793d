"""A run beside its engine's own figures, where the service knows a Prometheus that watched it."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.errors import InputError
from cliffwatch.slo.beside.compare import beside
from cliffwatch.slo.beside.document import Beside
from services.slo.answers import Answers
from services.slo.encoded import Encoded, encoded
from services.slo.parameters import NoParameters, RunId
from services.slo.problems import refusals
from services.slo.service import Service, content_answer
from services.slo.store import RunFolder

KEEP_S = 30.0  # the last scrape of a run comes after its end
NO_PROMETHEUS = "start this service with --prometheus URL to see the engine's own figures"


class EngineSide(BaseModel):
    """Both sides of a run, or why there is only one."""

    beside: Beside | None
    note: str | None = Field(description="Why the engine's side cannot be told; null where it is.")


class EngineSides:
    """Reads them on threads of its own, so that a Prometheus that hangs delays nothing else."""

    def __init__(self, service: Service, server: Prometheus | None) -> None:
        self._service = service
        self._server = server
        self._answers = Answers()

    async def of(self, folder: RunFolder) -> Encoded:
        """A run's two sides, an `EngineSide`. Raises RunError, UnreachableError, BusyError."""
        if self._server is None:
            return encoded(EngineSide(beside=None, note=NO_PROMETHEUS))
        stamp = f"{folder.fingerprint} {time.monotonic() // KEEP_S:.0f}"
        return await self._answers.get(folder.run_id, stamp, partial(self._read, folder, self._server))

    def close(self) -> None:
        """Wait for what is running; start nothing more."""
        self._answers.close()

    def _read(self, folder: RunFolder, server: Prometheus) -> Encoded:
        slo = self._service.slo_of(folder)
        try:
            found = self._service.read(folder, lambda reader: beside(reader, slo, server.ask_all))
        except InputError as error:  # of the run, not of the request: it goes on, or its engine is not known
            return encoded(EngineSide(beside=None, note=str(error)))
        return encoded(EngineSide(beside=found, note=None))


def add_engine(api: APIRouter, service: Service, sides: EngineSides) -> None:
    """The route answers whether or not there is a Prometheus."""

    @api.get(
        "/v1/runs/{run_id}/engine", tags=["figures"], response_model=EngineSide, responses=refusals(404, 409, 422, 503)
    )
    async def engine(request: Request, run_id: RunId, _asked: Annotated[NoParameters, Query()]) -> Response:
        """The engine's own figures over the run's time beside the client's, and where the time between went."""
        return content_answer(request, await sides.of(await service.find(run_id)))
