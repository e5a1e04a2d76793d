"""Endpoints of OpenAI's API, and those that its servers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cliffwatch import __version__
from services.engine.faces.face import Endpoint, Expose
from services.engine.faults import RequestFault
from services.engine.http import Connection, Request
from services.engine.requests import (
    ChatBody,
    CompletionBody,
    TokenizeBody,
    chat_job,
    completion_job,
    message_texts,
    parse,
)
from services.engine.tokenizer import Token, chat_prompt, completion_prompt, token_ids

if TYPE_CHECKING:
    from services.engine.service import Service


def completions(service: Service, connection: Connection, request: Request) -> None:
    """`/v1/completions`."""
    body = parse(request.body, CompletionBody)
    job = completion_job(body, service.identity.max_model_len)
    service.generate(connection, request, job, model=service.answering_model(body.model))


def chat(service: Service, connection: Connection, request: Request) -> None:
    """`/v1/chat/completions`."""
    body = parse(request.body, ChatBody)
    job = chat_job(body, service.identity.max_model_len)
    service.generate(connection, request, job, model=service.answering_model(body.model))


def models(owner: str, more: dict[str, Any] | None = None, *, with_length: bool = True) -> Endpoint:
    """`/v1/models`: one model, owned by `owner`, with `more` fields."""

    def endpoint(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
        entry = {"id": service.identity.model, "object": "model", "created": service.started_s, "owned_by": owner}
        entry |= more or {}
        if with_length:
            entry |= {"root": service.identity.model, "max_model_len": service.identity.max_model_len}
        connection.respond(200, msgspec.json.encode({"object": "list", "data": [entry]}))

    return endpoint


def tokenize(service: Service, connection: Connection, request: Request) -> None:
    """`/tokenize`."""
    body = parse(request.body, TokenizeBody)
    service.answering_model(body.model)
    tokens: list[Token]
    if body.messages is not None:
        texts = message_texts(body.messages)
        tokens = chat_prompt(texts, open_answer=body.add_generation_prompt)
    elif body.prompt is not None:
        tokens = completion_prompt(body.prompt, special=body.add_special_tokens)
    else:
        raise RequestFault(400, "Either prompt or messages must be provided.", kind="BadRequestError")
    answer = {
        "count": len(tokens),
        "max_model_len": service.identity.max_model_len,
        "tokens": token_ids(tokens),
        "token_strs": None,
    }
    connection.respond(200, msgspec.json.encode(answer))


def metrics(service: Service, connection: Connection, request: Request) -> None:
    """The metrics' text, as the face writes it."""
    exposed(service.face.expose)(service, connection, request)


def exposed(expose: Expose) -> Endpoint:
    """The metrics' text, written in one way."""

    def endpoint(service: Service, connection: Connection, request: Request) -> None:
        service.engine.observer.stand()
        body, kind = expose(service.metrics, request.headers.get("accept", ""))
        connection.respond(200, body, content_type=kind)

    return endpoint


def version(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    """The version that is spoken, and by whom."""
    spoken = f"{service.identity.version}+cliffwatch.{__version__}"
    connection.respond(200, msgspec.json.encode({"version": spoken}))


def empty(service: Service, connection: Connection, request: Request) -> None:  # noqa: ARG001
    """200, and nothing to say."""
    connection.respond(200, b"")
