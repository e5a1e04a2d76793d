"""One request's way: find the run, compare ETags, compute the answer off the event loop or take the kept one."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import duckdb
from fastapi import Request, Response
from pydantic import BaseModel

from cliffwatch import __version__
from cliffwatch.errors import InputError, RunError
from cliffwatch.records.manifest import RunState
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Phase
from cliffwatch.report.summary import Report, own_slo, summarize
from cliffwatch.slo.spec import SloFile
from services.slo.answers import Answers, Value
from services.slo.encoded import Encoded, json_of, tag_of
from services.slo.problems import UnsettledRunError
from services.slo.readers import Readers
from services.slo.store import RunFolder, RunStore

Parameters = TypeVar("Parameters", bound=BaseModel)


class Service:
    """What the routes share: the folder, the answers, and the SLO file that overrides the runs' own."""

    def __init__(self, store: RunStore, slo: SloFile | None) -> None:
        self.store = store
        self.slo = slo
        self.answers = Answers()
        self._readers = Readers()
        identity = f"{__version__} {'' if slo is None else slo.model_dump_json()}"
        self._salt = hashlib.sha256(identity.encode()).hexdigest()

    async def find(self, run_id: str) -> RunFolder:
        """The run as its files now are. Raises UnknownRunError."""
        return await self.answers.look(("find", run_id), partial(self.store.find, run_id))

    async def compute(self, folder: RunFolder, question: str, view: Callable[[RunReader], Value]) -> Value:
        """`view` of a run, kept under `question` for as long as the run's rows stay as they are. Raises RunError."""
        key = (folder.run_id, question)
        return await self.answers.get(key, folder.fingerprint, partial(self.read, folder, view))

    async def report(self, folder: RunFolder, phase: str) -> Report:
        """The run's judged report: attainment, outcomes and metrics are all parts of it. Raises RunError."""
        return await self.compute(folder, f"report {phase}", partial(self._report, folder, Phase(phase)))

    async def answer(self, request: Request, run_id: str, view: Callable[[RunFolder], Awaitable[bytes]]) -> Response:
        """`view` of that run, which is JSON; 304 where the client has what the rows still say.

        Raises:
            UnknownRunError, RunError.
        """
        folder = await self.find(run_id)
        tag = tag_of(folder.fingerprint, request.url.path, request.url.query, self._salt)
        if _holds(request, tag):
            return Response(status_code=304, headers=_headers(tag))
        return Response(await view(folder), media_type="application/json", headers=_headers(tag))

    async def viewed(
        self,
        request: Request,
        run_id: str,
        asked: Parameters,
        view: Callable[[str, RunReader, Parameters], BaseModel],
    ) -> Response:
        """`view(run_id, reader, asked)`, kept under the checked parameters: spelling makes no difference.

        Raises:
            UnknownRunError, InputError, RunError.
        """
        question = f"{request.url.path} {asked.model_dump_json()}"

        async def ask(folder: RunFolder) -> bytes:
            return await self.compute(folder, question, lambda reader: json_of(view(run_id, reader, asked)))

        return await self.answer(request, run_id, ask)

    async def judged(
        self, request: Request, run_id: str, phase: str, view: Callable[[str, Report], BaseModel]
    ) -> Response:
        """`view(run_id, report)` of a phase. Raises UnknownRunError, RunError."""
        key = (run_id, f"{request.url.path} {phase}")

        async def ask(folder: RunFolder) -> bytes:
            report = await self.report(folder, phase)
            return await self.answers.get(key, folder.fingerprint, lambda: json_of(view(run_id, report)))

        return await self.answer(request, run_id, ask)

    def _report(self, folder: RunFolder, phase: Phase, reader: RunReader) -> Report:
        return summarize(reader, self.slo_of(folder), phase=phase)

    def slo_of(self, folder: RunFolder) -> SloFile | None:
        """What the run is judged by. Raises RunError for a faulty SLO file in its folder."""
        try:
            return self.slo or own_slo(folder.path)
        except InputError as error:  # of the run's folder, not of the request
            raise RunError(error.message, file=error.file, field=error.field, value=error.value) from error

    def read(self, folder: RunFolder, view: Callable[[RunReader], Value]) -> Value:
        """`view` of a run, at once and on this thread. Raises RunError."""
        reader = self._readers.open(folder)
        try:
            return view(reader)
        except RunError as error:
            live = reader.manifest.state is RunState.RUNNING
            kind = UnsettledRunError if live else RunError
            message = folder.told(error.message)
            raise kind(message, file=error.file, field=error.field, value=error.value, allowed=error.allowed) from error
        except duckdb.Error as error:
            message = f"cannot be queried: {folder.told(str(error).splitlines()[0])}"
            raise RunError(message, file=folder.run_id) from error


def content_answer(request: Request, answer: Encoded) -> Response:
    """`answer`, or 304 where the client has it."""
    if _holds(request, answer.tag):
        return Response(status_code=304, headers=_headers(answer.tag))
    return Response(answer.text, media_type="application/json", headers=_headers(answer.tag))


def _holds(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return tag in [one.strip().removeprefix("W/") for one in given.split(",")]


def _headers(tag: str) -> dict[str, str]:
    return {"ETag": tag, "Cache-Control": "no-cache"}
