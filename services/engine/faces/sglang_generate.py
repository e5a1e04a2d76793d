"""SGLang's own endpoint: `/generate`, whose stream says the whole text so far in every event."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from services.engine.answers import DONE, Ended, Envelope, compact
from services.engine.faults import RequestFault, bad_value
from services.engine.http import Connection, Request
from services.engine.requests import CompletionBody, completion_job, parse

if TYPE_CHECKING:
    from services.engine.service import Service

DEFAULT_NEW_TOKENS = 128


class Sampling(msgspec.Struct, kw_only=True):
    """What `sampling_params` may say; other keys are ignored."""

    max_new_tokens: int | None = DEFAULT_NEW_TOKENS
    min_new_tokens: int = 0
    n: int = 1
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    temperature: float | None = None
    top_p: float | None = None


class GenerateBody(msgspec.Struct, kw_only=True):
    """Body of `/generate`."""

    text: str | list[str] | None = None
    input_ids: list[int | list[int]] | None = None
    sampling_params: Sampling = msgspec.field(default_factory=Sampling)
    stream: bool = False


def generate(service: Service, connection: Connection, request: Request) -> None:
    """`/generate`."""
    body = parse(request.body, GenerateBody)
    if (body.text is None) == (body.input_ids is None):
        raise RequestFault(400, "Either text or input_ids should be provided.", kind="Bad Request")
    prompt: Any = body.input_ids if body.text is None else body.text
    sampling = body.sampling_params
    if sampling.max_new_tokens is not None and sampling.max_new_tokens < 1:
        raise bad_value("max_new_tokens", "must be at least 1", sampling.max_new_tokens)
    asked = CompletionBody(
        prompt=prompt, max_tokens=sampling.max_new_tokens, min_tokens=sampling.min_new_tokens, n=sampling.n,
        stop=sampling.stop, ignore_eos=sampling.ignore_eos, temperature=sampling.temperature, top_p=sampling.top_p,
        stream=body.stream, add_special_tokens=True,
    )  # fmt: skip
    job = replace(completion_job(asked, service.identity.max_model_len), continuous_usage=True)
    one = isinstance(prompt, str) or (body.text is None and isinstance(prompt[0], int))
    service.generate(connection, request, job, wire=GenerateWire(listed=not one or sampling.n > 1))


def health_generate(service: Service, connection: Connection, request: Request) -> None:
    """200 when the engine has made a token."""
    job = completion_job(CompletionBody(prompt=[0], max_tokens=1), service.identity.max_model_len)
    service.generate(connection, request, job, wire=SilentWire(listed=False))


def _meta(envelope: Envelope, finish: dict[str, Any] | None, prompt_tokens: int, tokens: int) -> dict[str, Any]:
    return {
        "id": envelope.answer_id,
        "finish_reason": finish,
        "prompt_tokens": prompt_tokens,
        "weight_version": "default",
        "completion_tokens": tokens,
    }


def _finish(reason: str | None, stop: str | None, tokens: int) -> dict[str, Any] | None:
    if reason is None:
        return None
    return {"type": "length", "length": tokens} if reason == "length" else {"type": reason, "matched": stop}


class GenerateFrames:
    """Every event has the whole text so far; each carries its counts, so none is a plain token's."""

    def __init__(self, envelope: Envelope, index: int, *, listed: bool) -> None:
        self._envelope = envelope
        self._index = {"index": index} if listed else {}
        self._text = ""

    def token(self, text: bytes) -> bytes:
        """A text whose event is not sent: the next one has it too."""
        self._text += text.decode()
        return b""

    def special(
        self,
        text: bytes,
        *,
        finish_reason: str | None,
        stop_reason: str | None,
        usage: tuple[int, int] | None,
        closes: bool,  # noqa: ARG002
    ) -> bytes:
        """See `Frames`."""
        self._text += text.decode()
        prompt_tokens, tokens = usage or (0, 0)
        finish = _finish(finish_reason, stop_reason, tokens)
        event = {
            "text": self._text, "meta_info": _meta(self._envelope, finish, prompt_tokens, tokens), **self._index,
        }  # fmt: skip
        return self._envelope.frame(f"data: {compact(event)}\n\n".encode())


class GenerateWire:
    """Answers of `/generate`: one object, or a list of them where several were asked for."""

    terminator = DONE

    def __init__(self, *, listed: bool) -> None:
        self._listed = listed

    def answer_id(self, unique: str, *, chat: bool) -> str:  # noqa: ARG002
        """See `Wire`."""
        return unique

    def frames(self, envelope: Envelope, index: int) -> GenerateFrames:
        """See `Wire`."""
        return GenerateFrames(envelope, index, listed=self._listed)

    def role_frame(self, envelope: Envelope, index: int) -> bytes:  # noqa: ARG002
        """There are no roles."""
        return b""

    def usage_frame(self, envelope: Envelope, prompt_tokens: int, completion_tokens: int) -> bytes:  # noqa: ARG002
        """Every event has its counts already."""
        return b""

    def whole(self, envelope: Envelope, choices: list[Ended], prompt_tokens: int) -> bytes:  # noqa: ARG002
        """See `Wire`."""
        answers = [
            {
                "text": ended.text,
                "meta_info": _meta(
                    envelope,
                    _finish(ended.finish_reason, ended.stop_reason, ended.tokens),
                    ended.prompt_tokens,
                    ended.tokens,
                ),
            }
            for ended in choices
        ]
        return json.dumps(answers if self._listed else answers[0]).encode()


class SilentWire(GenerateWire):
    """An answer of which only the status is told."""

    def whole(self, envelope: Envelope, choices: list[Ended], prompt_tokens: int) -> bytes:  # noqa: ARG002
        """Nothing."""
        return b""
