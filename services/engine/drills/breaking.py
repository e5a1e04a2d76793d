"""How an answer breaks off."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from services.engine.answering import Answer, Doom
from services.engine.drills.conditions import Break
from services.engine.faults import RequestFault

if TYPE_CHECKING:
    from services.engine.service import Service


def doom_of(found: Break, service: Service) -> Doom:
    """What an answer of that service has to expect."""
    return Doom(found.after_tokens, partial(_ENDINGS[found.ending], service))


def _in_error(service: Service, answer: Answer) -> None:
    """An event with the error, as servers end a stream that has begun; a whole answer is an error as a whole."""
    connection = answer.connection
    service.engine.fail(answer)
    body = service.fault_body(RequestFault(500, "The engine failed in the middle of the answer.", kind="EngineError"))
    if answer.job.stream:
        connection.write(answer.envelope.frame(b"data: %b\n\n" % body) + answer.envelope.end())
        connection.finish()
    else:
        connection.respond(500, body)


def _cut(service: Service, answer: Answer) -> None:  # noqa: ARG001
    """As when a proxy, or the network, gives up: the engine sees a client that is gone."""
    answer.connection.abort()


_ENDINGS: dict[str, Callable[[Service, Answer], None]] = {"error": _in_error, "cut": _cut}
