"""Answers to requests that cannot be served: vLLM's words, in the shape of each face."""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus

import msgspec

_MSGSPEC_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_JSON_BYTE = re.compile(r"\(byte (?P<byte>\d+)\)")


class RequestFault(Exception):  # noqa: N818  it is an answer, not a failure of the program
    """A request is refused with `status`; a face makes the body that says why. `kind` is the status's phrase."""

    def __init__(self, status: int, message: str, *, kind: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind or HTTPStatus(status).phrase
        self.param = param


# What a full queue says, by the option whose limit it is.
BUSY = {
    "max_num_queued_reqs": (
        "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance."
    ),
    "max_num_queued_tokens": (
        "The engine has reached its prefill token backlog limit. Please try again later or on a different instance."
    ),
}

FaultBody = Callable[[RequestFault], bytes]


def flat_body(fault: RequestFault) -> bytes:
    """An error as one flat object."""
    error = {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.status}
    return msgspec.json.encode({"object": "error", **error})


def nested_body(fault: RequestFault) -> bytes:
    """An error as an object within an object."""
    error = {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.status}
    return msgspec.json.encode({"error": error})


def bare_body(fault: RequestFault) -> bytes:
    """An error as its words alone."""
    return msgspec.json.encode({"error": fault.message})


def bad_value(name: str, rule: str, value: object) -> RequestFault:
    """400 for a value out of its range, such as `max_tokens must be at least 1, got -5.`"""
    message = f"{name} {rule}, got {value}. (parameter={name}, value={value})"
    return RequestFault(400, message, kind="BadRequestError", param=name)


def unsupported(name: str) -> RequestFault:
    """400 for a feature that a stand-in has no answer to; ignoring it would be a wrong answer."""
    message = f"{name} is not supported by this stand-in engine. (parameter={name})"
    return RequestFault(400, message, kind="BadRequestError", param=name)


def unknown_model(name: str, served: str) -> RequestFault:
    """404 for a model that is not served."""
    message = f"The model `{name[:200]}` does not exist. Valid aliases: {served}."
    return RequestFault(404, message, kind="NotFoundError", param="model")


def too_long(prompt_tokens: int, output_tokens: int | None, max_model_len: int) -> RequestFault:
    """400 for a prompt (with the output asked for, where given) over the model's length."""
    message = f"This model's maximum context length is {max_model_len} tokens. However, "
    if output_tokens is None or prompt_tokens >= max_model_len:
        message += (
            f"your prompt contains at least {prompt_tokens} input tokens, which exceeds this limit even without any "
            "output tokens. Please reduce the length of the input prompt."
        )
    else:
        message += (
            f"you requested {output_tokens} output tokens and your prompt contains at least {prompt_tokens} input "
            f"tokens, for a total of at least {prompt_tokens + output_tokens} tokens. Please reduce the length of the "
            "input prompt or the number of requested output tokens."
        )
    message += f" (parameter=input_tokens, value={prompt_tokens})"
    return RequestFault(400, message, kind="BadRequestError", param="input_tokens")


def invalid_body(error: Exception) -> RequestFault:
    """400 for a body that is not JSON, or not of the right types."""
    text = str(error)
    if isinstance(error, msgspec.ValidationError):
        found = _MSGSPEC_PATH.search(text)
        place = "body" + (found["path"] if found else "")
        return _validation("type_error", place, _MSGSPEC_PATH.sub("", text))
    position = _JSON_BYTE.search(text)
    return _validation("json_invalid", f"body.{position['byte'] if position else 0}", f"JSON decode error: {text}")


def _validation(kind: str, place: str, message: str) -> RequestFault:
    text = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{place}', 'msg': '{message}'}}"
    return RequestFault(400, text, kind="Bad Request", param=place)
