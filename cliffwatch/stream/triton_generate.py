"""Triton's generate extension: `generate_stream` is an event stream without finish reason, usage or terminator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from cliffwatch.errors import InputError
from cliffwatch.stream.dialect import Chunk, Delta
from cliffwatch.stream.openai_wire import as_fault, decode_wire


class _Body(msgspec.Struct, gc=False):
    text_output: str | list[str] | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Body)


class TritonGenerate:
    """A model whose text tensors are named `text_input` and `text_output`, as TensorRT-LLM's are.

    Other fields become tensors of the model or, where it has none of that name, parameters of the request.
    """

    name = "triton"
    path = "/v2/models/{model}/generate_stream"
    ends_by_close = True
    batches = False
    counts = False
    own_fields = frozenset({"text_input", "max_tokens", "stream"})
    spellings: ClassVar[Mapping[str, str | None]] = {"stop": "stop_words", "ignore_eos": None}

    def encode(  # the model stands in the path
        self,
        *,
        model: str,  # noqa: ARG002
        prompts: Sequence[str],
        max_tokens: int,
        sampling: Mapping[str, object],
    ) -> bytes:
        """See `Dialect.encode`."""
        if len(prompts) != 1:
            raise InputError("generate carries one prompt a request", value=len(prompts), allowed="batch sizes of 1")
        return msgspec.json.encode({**sampling, "text_input": prompts[0], "max_tokens": max_tokens, "stream": True})

    def decode(self, data: bytes) -> Chunk:
        """See `Dialect.decode`."""
        body = decode_wire(_DECODER, data)
        if body.error:
            return Chunk(error=as_fault(body.error))
        text = "".join(body.text_output) if isinstance(body.text_output, list) else body.text_output
        return Chunk((Delta(0, text),) if text else ())
