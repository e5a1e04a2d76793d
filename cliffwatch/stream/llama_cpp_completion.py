"""llama.cpp's own `/completion`: prompts told apart by `index`; a last event each, with counts, ends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from cliffwatch.stream.dialect import Chunk, Delta, Usage
from cliffwatch.stream.openai_wire import Number, as_fault, decode_wire, token_count

# `stop_type` of the last event, in OpenAI's words; others stay as they are.
_REASONS = {"limit": "length", "eos": "stop", "word": "stop"}


class _Timings(msgspec.Struct, gc=False):
    cache_n: Number = None


class _Body(msgspec.Struct, gc=False):
    content: str | None = None
    index: int | None = 0
    stop: bool | None = None
    stop_type: str | None = None
    tokens_evaluated: Number = None
    tokens_predicted: Number = None
    timings: _Timings | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Body | None)


class LlamaCppCompletion:
    """llama.cpp's server. `tokens_evaluated` counts the whole prompt; of it `timings.cache_n` came from the cache.

    `tokens_cached` is neither: it is what the slot holds afterwards, answer included.
    """

    name = "llamacpp"
    path = "/completion"
    ends_by_close = False
    batches = True
    counts = True
    own_fields = frozenset({"prompt", "n_predict", "stream"})
    spellings: ClassVar[Mapping[str, str | None]] = {"repetition_penalty": "repeat_penalty"}

    def encode(  # a server has one model
        self,
        *,
        model: str,  # noqa: ARG002
        prompts: Sequence[str],
        max_tokens: int,
        sampling: Mapping[str, object],
    ) -> bytes:
        """See `Dialect.encode`."""
        prompt = prompts[0] if len(prompts) == 1 else list(prompts)
        return msgspec.json.encode({**sampling, "prompt": prompt, "n_predict": max_tokens, "stream": True})

    def decode(self, data: bytes) -> Chunk:
        """See `Dialect.decode`."""
        body = decode_wire(_DECODER, data)
        if body is None:  # `data: null` comes before a batch
            return Chunk()
        if body.error:
            return Chunk(error=as_fault(body.error))
        index = body.index or 0
        deltas = (Delta(index, body.content),) if body.content else ()
        return _last(body, index, deltas) if body.stop else Chunk(deltas)


def _last(body: _Body, index: int, deltas: tuple[Delta, ...]) -> Chunk:
    cached = None if body.timings is None else token_count(body.timings.cache_n)
    usage = Usage(token_count(body.tokens_evaluated), token_count(body.tokens_predicted), cached, index)
    return Chunk(deltas, usage, {index: _REASONS.get(body.stop_type or "", body.stop_type or "stop")})
