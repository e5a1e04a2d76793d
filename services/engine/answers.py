"""Answer bodies of the OpenAI API, key by key as vLLM 0.32 writes them: stream frames, and whole answers.

A stream frame is a fixed head, the text of one token, and one of two fixed tails, framed as one HTTP chunk; nothing is
serialised per token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

DONE = b"data: [DONE]\n\n"
LAST_CHUNK = b"0\r\n\r\n"
_SIZES = tuple(b"%x\r\n" % size for size in range(4096))

_CHOICE_NULLS = {"prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
_MESSAGE_NULLS = {"refusal": None, "annotations": None, "audio": None, "function_call": None, "reasoning": None}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all frames of one answer share."""

    answer_id: str
    created_s: int
    model: str
    fingerprint: str
    chat: bool
    chunked: bool

    def opening(self) -> str:
        """The JSON object up to its choices."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return (
            f'{{"id":"{self.answer_id}","object":"{kind}","created":{self.created_s},'
            f'"model":{json.dumps(self.model)},"choices":['
        )

    def frame(self, data: bytes) -> bytes:
        """`data` as one HTTP chunk (bare for HTTP/1.0)."""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data

    def role_frame(self, index: int) -> bytes:
        """The first frame of a chat choice: the role, and no text."""
        choice = f'{{"index":{index},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}'
        return self.frame(f'data: {self.opening()}{choice}],"prompt_token_ids":null,"prompt_text":null}}\n\n'.encode())

    def usage_frame(self, prompt_tokens: int, completion_tokens: int) -> bytes:
        """The frame after the last token where usage was asked for; `choices` is empty."""
        usage = _usage_json(prompt_tokens, completion_tokens)
        fingerprint = json.dumps(self.fingerprint)
        data = f'data: {self.opening()}],"usage":{usage},"system_fingerprint":{fingerprint}}}\n\n'
        return self.frame(data.encode())

    def end(self) -> bytes:
        """`[DONE]`, and the end of the HTTP body."""
        return self.frame(DONE) + (LAST_CHUNK if self.chunked else b"")

    def whole(self, choices: list[dict[str, Any]], prompt_tokens: int, completion_tokens: int) -> bytes:
        """An answer that is not streamed."""
        body = {
            "id": self.answer_id,
            "object": "chat.completion" if self.chat else "text_completion",
            "created": self.created_s,
            "model": self.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": self.fingerprint,
            "usage": {
                **json.loads(_usage_json(prompt_tokens, completion_tokens)),
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
            **({"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None} if self.chat else {}),
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": None,
        }
        return json.dumps(body, separators=(",", ":")).encode()

    def whole_choice(self, index: int, text: str, finish_reason: str, stop_reason: str | None) -> dict[str, Any]:
        """One choice of an answer that is not streamed."""
        ending = {"logprobs": None, "finish_reason": finish_reason, "stop_reason": stop_reason, "token_ids": None}
        if self.chat:
            message = {"role": "assistant", "content": text, **_MESSAGE_NULLS}
            return {"index": index, "message": message, **ending, "routed_experts": None}
        return {"index": index, "text": text, **ending, **_CHOICE_NULLS}


class Frames:
    """The frames of one choice of a stream."""

    __slots__ = ("_chunked", "_ending", "_head", "_tail")

    def __init__(self, envelope: Envelope, index: int) -> None:
        field = '"delta":{"content":"' if envelope.chat else '"text":"'
        end = b"\r\n" if envelope.chunked else b""
        tail = _completion_tail if not envelope.chat else _chat_tail
        self._chunked = envelope.chunked
        self._head = f'data: {envelope.opening()}{{"index":{index},{field}'.encode()
        self._tail = tail("null", "null") + b"}\n\n" + end
        self._ending = tail, end

    def token(self, text: bytes) -> bytes:
        """The frame of a token that is not the last; `text` is JSON-safe."""
        if not self._chunked:
            return b"".join((self._head, text, self._tail))
        size = len(self._head) + len(text) + len(self._tail) - 2
        return b"".join((_SIZES[size] if size < len(_SIZES) else b"%x\r\n" % size, self._head, text, self._tail))

    def special(
        self,
        text: bytes,
        *,
        finish_reason: str | None,
        stop_reason: str | None,
        usage: tuple[int, int] | None,
        fingerprint: str | None,
    ) -> bytes:
        """The frame of a token that ends its choice, is cut, or carries usage (prompt, completion tokens).

        `fingerprint` stands in the last frame of a stream that has no frame of usage.
        """
        tail, end = self._ending
        data = self._head + text + tail(json.dumps(finish_reason), json.dumps(stop_reason))
        if usage is not None:
            data += b',"usage":' + _usage_json(*usage).encode()
        if fingerprint is not None:
            data += b',"system_fingerprint":' + json.dumps(fingerprint).encode()
        data += b"}\n\n"
        return (b"%x\r\n" % len(data) if self._chunked else b"") + data + end


def _completion_tail(finish_reason: str, stop_reason: str) -> bytes:
    return (
        f'","logprobs":null,"finish_reason":{finish_reason},"stop_reason":{stop_reason},'
        '"prompt_token_ids":null,"token_ids":null}]'
    ).encode()


def _chat_tail(finish_reason: str, stop_reason: str) -> bytes:
    stop = "" if finish_reason == "null" else f'"stop_reason":{stop_reason},'
    return f'"}},"logprobs":null,"finish_reason":{finish_reason},{stop}"token_ids":null}}]'.encode()


def _usage_json(prompt_tokens: int, completion_tokens: int) -> str:
    total = prompt_tokens + completion_tokens
    return f'{{"prompt_tokens":{prompt_tokens},"total_tokens":{total},"completion_tokens":{completion_tokens}}}'
