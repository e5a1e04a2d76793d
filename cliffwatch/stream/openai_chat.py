"""`/v1/chat/completions`: one prompt a request; text may be answer, reasoning or a tool call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import ClassVar

import msgspec

from cliffwatch.errors import InputError
from cliffwatch.stream.dialect import Chunk, Delta, Kind
from cliffwatch.stream.openai_wire import DONE, WIRE_FIELDS, WireBody, WireChoice, chunk_of, decode_wire, encode_wire


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, object] | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(WireChoice, gc=False):
    delta: _Message | None = None
    message: _Message | None = None  # in place of `delta` in a whole answer


_DECODER = msgspec.json.Decoder(WireBody[_Choice] | None)


class OpenAIChat:
    """Single prompts through the server's chat template."""

    name = "chat"
    path = "/v1/chat/completions"
    ends_by_close = False
    batches = False
    counts = True
    own_fields = frozenset({"model", "messages", "max_tokens", *WIRE_FIELDS})
    spellings: ClassVar[Mapping[str, str | None]] = {}

    def encode(self, *, model: str, prompts: Sequence[str], max_tokens: int, sampling: Mapping[str, object]) -> bytes:
        """See `Dialect.encode`."""
        if len(prompts) != 1:
            raise InputError("chat carries one prompt a request", value=len(prompts), allowed="endpoint: completions")
        return self.encode_turn(model=model, said=prompts, max_tokens=max_tokens, sampling=sampling)

    def encode_turn(self, *, model: str, said: Sequence[str], max_tokens: int, sampling: Mapping[str, object]) -> bytes:
        """The body of a conversation's next turn; `said` is message, answer, message, ..., the last one new."""
        messages = [{"role": role, "content": text} for role, text in zip(cycle(("user", "assistant")), said)]
        return encode_wire({**sampling, "model": model, "messages": messages, "max_tokens": max_tokens})

    def decode(self, data: bytes) -> Chunk:
        """See `Dialect.decode`."""
        if data == DONE:
            return Chunk(done=True)
        body = decode_wire(_DECODER, data)
        if body is None:
            return Chunk()
        deltas = []
        for choice in body.choices or ():
            message = choice.delta or choice.message
            if message is not None and (delta := _delta(choice.index or 0, message)) is not None:
                deltas.append(delta)
        return chunk_of(body, tuple(deltas))


def _delta(index: int, message: _Message) -> Delta | None:
    """One delta for all that a message carries: its text, and the kind that matters most for time to first answer."""
    if message.content:
        return Delta(index, message.content)
    if message.refusal:
        return Delta(index, message.refusal)
    kind: Kind = "tool"
    text = "".join(_called(call.function) for call in message.tool_calls or ()) + _called(message.function_call)
    if not text:
        kind = "reasoning"
        text = message.reasoning or message.reasoning_content or ""
    return Delta(index, text, kind) if text else None


def _called(function: _Function | None) -> str:
    if function is None:
        return ""
    arguments = function.arguments or ""
    return (function.name or "") + (
        arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    )
