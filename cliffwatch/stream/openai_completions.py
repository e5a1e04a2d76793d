"""`/v1/completions`: one request, one prompt or a batch of them, told apart by `choices[].index`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from cliffwatch.stream.dialect import Chunk, Delta
from cliffwatch.stream.openai_wire import DONE, WIRE_FIELDS, WireBody, WireChoice, chunk_of, decode_wire, encode_wire


class _Choice(WireChoice, gc=False):
    text: str | None = None


_DECODER = msgspec.json.Decoder(WireBody[_Choice] | None)


class OpenAICompletions:
    """Servers that speak it: vLLM, SGLang, llama.cpp, TensorRT-LLM's OpenAI front end and most gateways."""

    name = "completions"
    path = "/v1/completions"
    ends_by_close = False
    batches = True
    counts = True
    own_fields = frozenset({"model", "prompt", "max_tokens", *WIRE_FIELDS})
    spellings: ClassVar[Mapping[str, str | None]] = {}

    def encode(self, *, model: str, prompts: Sequence[str], max_tokens: int, sampling: Mapping[str, object]) -> bytes:
        """See `Dialect.encode`. A single prompt goes as a string, for servers that know no lists."""
        prompt = prompts[0] if len(prompts) == 1 else list(prompts)
        return encode_wire({**sampling, "model": model, "prompt": prompt, "max_tokens": max_tokens})

    def decode(self, data: bytes) -> Chunk:
        """See `Dialect.decode`."""
        if data == DONE:
            return Chunk(done=True)
        body = decode_wire(_DECODER, data)
        if body is None:  # llama.cpp sends `data: null` before a batch
            return Chunk()
        return chunk_of(body, tuple([Delta(c.index or 0, c.text) for c in body.choices or () if c.text]))
