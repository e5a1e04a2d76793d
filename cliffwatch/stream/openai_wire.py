"""What OpenAI's completions and chat bodies share: the JSON envelope, usage, errors. Unknown fields and nulls pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from cliffwatch.stream.dialect import Chunk, Delta, NotTheDialectError, StreamFault, Usage

DONE = b"[DONE]"
WIRE_FIELDS = ("stream", "stream_options")  # written by `encode_wire`

Number = int | float | None
Wire = TypeVar("Wire")


class WireChoice(msgspec.Struct, gc=False):
    index: int | None = 0
    finish_reason: str | None = None


Choice = TypeVar("Choice", bound=WireChoice)


class WireDetails(msgspec.Struct, gc=False):
    cached_tokens: Number = None


class WireUsage(msgspec.Struct, gc=False):
    prompt_tokens: Number = None
    completion_tokens: Number = None
    prompt_tokens_details: WireDetails | None = None


class WireBody(msgspec.Struct, Generic[Choice], gc=False):
    """A chunk or a whole answer. `object`, `message` and `code` carry SGLang's bare form of an error."""

    choices: list[Choice] | None = None
    usage: WireUsage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None
    code: Any = None


def encode_wire(request: Mapping[str, object]) -> bytes:
    """The body of a request whose answer is streamed and ends with the server's own token counts."""
    return msgspec.json.encode({**request, "stream": True, "stream_options": {"include_usage": True}})


def decode_wire(decoder: msgspec.json.Decoder[Wire], data: bytes) -> Wire:
    """Decode `data`; what msgspec refuses but Python's json reads is tried again by that.

    Python servers write `NaN` and `-Infinity` for log-probabilities, and some gateways cut a surrogate pair in two:
    neither is JSON by the letter, and neither may cost a request.

    Raises:
        NotTheDialectError: not JSON, or JSON of another shape.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise NotTheDialectError(f"unexpected JSON: {error}", value=_sample(data)) from error
    except RecursionError as error:
        raise NotTheDialectError("JSON nested too deeply", value=_sample(data)) from error
    except msgspec.DecodeError:
        pass
    try:
        wire: Wire = msgspec.convert(json.loads(data), decoder.type)
    except (ValueError, RecursionError) as error:
        raise NotTheDialectError("not JSON", value=_sample(data)) from error
    return wire


def chunk_of(body: WireBody[Choice], deltas: tuple[Delta, ...]) -> Chunk:
    """The chunk of a body whose choices' deltas are known already."""
    usage = None
    if body.usage is not None:
        only = body.choices[0] if body.choices is not None and len(body.choices) == 1 else None
        usage = usage_of(body.usage, only.index if only else None)
    finish = {choice.index or 0: choice.finish_reason for choice in body.choices or () if choice.finish_reason}
    return Chunk(deltas, usage, finish, fault_of(body))


def fault_of(body: WireBody[Any]) -> StreamFault | None:
    """The error that a body carries, in any of the forms that servers use."""
    if body.error:
        return as_fault(body.error)
    if body.object == "error":
        return as_fault({"message": body.message, "code": body.code})
    return None


def as_fault(error: object) -> StreamFault:
    """A fault from the value of an `error` field: text, or an object with `message`, `code` and the like."""
    if isinstance(error, dict):
        code = error.get("code")
        message = error.get("message") or error.get("type") or json.dumps(error)
        return StreamFault(tidy(str(message)), code if isinstance(code, int) and not isinstance(code, bool) else None)
    return StreamFault(tidy(str(error)))


def usage_of(usage: WireUsage, index: int | None) -> Usage:
    """Usage in our terms. A value that is no token count becomes -1, for the reader to warn of; it is never used."""
    details = usage.prompt_tokens_details
    return Usage(
        token_count(usage.prompt_tokens),
        token_count(usage.completion_tokens),
        None if details is None else token_count(details.cached_tokens),
        index,
    )


def tidy(text: str, limit: int = 300) -> str:
    """One printable line of at most `limit` characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def token_count(value: Number) -> int | None:
    """A count as a server gave it; -1 for a number that is none, see `usage_of`."""
    if value is None:
        return None
    return int(value) if 0 <= value <= 2**53 and value == int(value) else -1


def _sample(data: bytes) -> str:
    return tidy(data[:200].decode("utf-8", "replace"), 60)
