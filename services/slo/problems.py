"""Every refusal as one JSON shape (RFC 9457 problem details) that names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from cliffwatch.errors import CliffwatchError, InputError, RunError, UnreachableError, shorten
from services.slo.store import RunsFolderError, UnknownRunError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2


class Problem(BaseModel):
    """Why a request was refused."""

    title: str = Field(description="The kind of problem.")
    status: int = Field(description="The HTTP status, again.")
    detail: str = Field(description="What is wrong, in a sentence.")
    file: str | None = Field(default=None, description="The file the trouble is in, by its name.")
    field: str | None = Field(default=None, description="The parameter, or the place in the file.")
    value: str | None = Field(default=None, description="What was found, shortened.")
    allowed: str | None = Field(default=None, description="What would have been right.")


class BusyError(CliffwatchError):
    """More work is waiting than the service takes on, or an answer is taking longer than a client should wait."""


class UnsettledRunError(RunError):
    """A run that is being written could not be read at this moment; the next read may work."""


class UnknownSloError(CliffwatchError):
    """No SLO of that name is watched."""


class NotAllowedError(CliffwatchError):
    """A notification without the bearer token that was asked for."""


class TooLargeError(CliffwatchError):
    """A body over its limit."""


# The first class that fits gives status and title.
_STATUS: tuple[tuple[type[CliffwatchError], int, str], ...] = (
    (UnknownRunError, 404, "Unknown run"),
    (UnknownSloError, 404, "Unknown SLO"),
    (NotAllowedError, 401, "Not allowed"),
    (TooLargeError, 413, "Too large"),
    (UnreachableError, 503, "Prometheus cannot be asked"),
    (RunsFolderError, 503, "Runs folder cannot be read"),
    (UnsettledRunError, 503, "Run is being written"),
    (RunError, 409, "Run is damaged"),
    (InputError, 422, "Bad parameter"),
    (BusyError, 503, "Busy"),
    (CliffwatchError, 500, "Cannot be answered"),
)

_HTTP_TITLES = {404: "Not found", 405: "Method not allowed"}

# pydantic error type: what is allowed, from the error's context
_ALLOWED = {
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "literal_error": "{expected}",
    "one_of": "{expected}",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "missing": "a value",
}


_MEANINGS = {
    401: "The bearer token is missing or wrong.",
    404: "There is no run or SLO of that name.",
    409: "The run is damaged.",
    413: "The body is too large.",
    422: "A parameter is not allowed.",
    503: "Busy, or the run is being written, or Prometheus does not answer: ask again.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer beside its own, for the OpenAPI."""
    content = {MEDIA_TYPE: {"schema": Problem.model_json_schema()}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in statuses}


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """`problem` as a response that no cache keeps."""
    return Response(
        problem.model_dump_json(),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def install(app: FastAPI) -> None:
    """Make `app` answer every error, its own included, with a Problem."""
    app.add_exception_handler(CliffwatchError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CliffwatchError)  # noqa: S101  registered for this class only
    status, title = next((status, title) for kind, status, title in _STATUS if isinstance(error, kind))
    problem = Problem(
        title=title,
        status=status,
        detail=error.message,
        file=None if error.file is None else error.file.rsplit("/", 1)[-1],
        field=error.field,
        value=None if error.value is None else shorten(error.value),
        allowed=error.allowed,
    )
    return problem_response(problem, {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    return problem_response(_validation_problem(request, error.errors()))


def _validation_problem(request: Request, errors: Sequence[Any]) -> Problem:
    first = errors[0]
    unknown = first["type"] == "extra_forbidden"
    context = first.get("ctx", {})
    allowed = _ALLOWED.get(first["type"], "").format_map({key: str(value) for key, value in context.items()}) or None
    more = f" (and {len(errors) - 1} more faults)" if len(errors) > 1 else ""
    return Problem(
        title="Bad parameter",
        status=422,
        detail=("unknown parameter" if unknown else first["msg"].removeprefix("Value error, ")) + more,
        field=shorten(str(first["loc"][-1]))[1:-1] if first["loc"] else None,
        value=shorten(first["input"]),
        allowed=_parameters(request) if unknown else allowed,
    )


def _parameters(request: Request) -> str:
    """The query parameters that the route takes, from the OpenAPI that the application publishes."""
    template = getattr(request.scope.get("route"), "path", "")
    operation = request.app.openapi()["paths"].get(template, {}).get("get", {})
    names = [item["name"] for item in operation.get("parameters", ()) if item["in"] == "query"]
    return f"the parameters {', '.join(names)}" if names else "no parameters"


def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    title = _HTTP_TITLES.get(error.status_code, "Cannot be answered")
    allowed = {404: "the paths in /openapi.json", 405: (error.headers or {}).get("Allow", "GET")}.get(error.status_code)
    problem = Problem(title=title, status=error.status_code, detail=str(error.detail), allowed=allowed)
    return problem_response(problem, error.headers)


def _unexpected(_request: Request, _error: Exception) -> Response:
    detail = "an unexpected error; the service's log has it"
    return problem_response(Problem(title="Internal error", status=500, detail=detail))
