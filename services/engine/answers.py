"""Answer bodies: stream frames, and whole answers. What they look like is a face's `Wire`; how they are made is here.

A stream frame is a fixed head, the text of one token, and a fixed tail, framed as one HTTP chunk; nothing is serialised
per token.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

DONE = b"data: [DONE]\n\n"
LAST_CHUNK = b"0\r\n\r\n"
_SIZES = tuple(b"%x\r\n" % size for size in range(4096))


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all frames of one answer share."""

    answer_id: str
    created_s: int
    model: str
    fingerprint: str
    chat: bool
    chunked: bool
    wire: Wire

    def frame(self, data: bytes) -> bytes:
        """`data` as one HTTP chunk (bare for HTTP/1.0)."""
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data

    def end(self) -> bytes:
        """The terminator, and the end of the HTTP body."""
        terminator = self.frame(self.wire.terminator) if self.wire.terminator else b""
        return terminator + (LAST_CHUNK if self.chunked else b"")


@dataclass(frozen=True, slots=True)
class Ended:
    """One answer text that is complete."""

    index: int
    text: str
    finish_reason: str
    stop_reason: str | None
    prompt_tokens: int
    tokens: int


class Frames(Protocol):
    """The frames of one choice of a stream."""

    def token(self, text: bytes) -> bytes:
        """The frame of a token that is not the last; `text` is JSON-safe."""

    def special(
        self,
        text: bytes,
        *,
        finish_reason: str | None,
        stop_reason: str | None,
        usage: tuple[int, int] | None,
        closes: bool,
    ) -> bytes:
        """The frame of a token that ends its choice, is cut, or carries usage (prompt, completion tokens).

        `closes`: no other frame of the stream comes after it but the terminator.
        """


class Wire(Protocol):
    """How an API writes answers.

    Attributes:
        terminator: what ends a stream; empty where its close alone does.
    """

    @property
    def terminator(self) -> bytes: ...

    def answer_id(self, unique: str, *, chat: bool) -> str:
        """The name of an answer."""

    def frames(self, envelope: Envelope, index: int) -> Frames:
        """Of one choice of a stream."""

    def role_frame(self, envelope: Envelope, index: int) -> bytes:
        """The first frame of a chat choice, where there is one."""

    def usage_frame(self, envelope: Envelope, prompt_tokens: int, completion_tokens: int) -> bytes:
        """The frame after the last token where usage was asked for."""

    def whole(self, envelope: Envelope, choices: list[Ended], prompt_tokens: int) -> bytes:
        """An answer that is not streamed."""


def token_counts(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """`usage` as every server of OpenAI's API begins it."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


class TextFrames:
    """Frames of a head, a text and a tail, the same for every token but the last.

    Args:
        head: the frame up to the text.
        tail: (finish reason, stop reason), both as JSON, to the frame after the text, without its extras and end.
        extras: (usage or None, whether it closes the stream) to what stands before the frame's closing brace.
        apart: the frame that says the finish reason, where the one with the text does not; (finish, stop) as JSON.
    """

    __slots__ = ("_apart", "_chunked", "_extras", "_head", "_tail", "_usual")

    def __init__(
        self,
        envelope: Envelope,
        head: str,
        tail: Callable[[str, str], str],
        extras: Callable[[tuple[int, int] | None, bool], str],
        apart: Callable[[str, str], str] | None = None,
    ) -> None:
        self._chunked = envelope.chunked
        self._head = head.encode()
        self._tail = tail
        self._extras = extras
        self._apart = apart
        self._usual = f"{tail('null', 'null')}{extras(None, False)}}}\n\n".encode() + (
            b"\r\n" if self._chunked else b""
        )

    def token(self, text: bytes) -> bytes:
        """See `Frames`."""
        if not self._chunked:
            return b"".join((self._head, text, self._usual))
        size = len(self._head) + len(text) + len(self._usual) - 2
        return b"".join((_SIZES[size] if size < len(_SIZES) else b"%x\r\n" % size, self._head, text, self._usual))

    def special(
        self,
        text: bytes,
        *,
        finish_reason: str | None,
        stop_reason: str | None,
        usage: tuple[int, int] | None,
        closes: bool,
    ) -> bytes:
        """See `Frames`."""
        ending = json.dumps(finish_reason), json.dumps(stop_reason)
        if finish_reason is not None and self._apart is not None:
            return self._framed(self._head + text, ("null", "null"), usage, closes=False) + self._whole(
                f"{self._apart(*ending)}{self._extras(None, closes)}}}\n\n".encode()
            )
        return self._framed(self._head + text, ending, usage, closes=closes)

    def _framed(self, start: bytes, ending: tuple[str, str], usage: tuple[int, int] | None, *, closes: bool) -> bytes:
        return self._whole(start + f"{self._tail(*ending)}{self._extras(usage, closes)}}}\n\n".encode())

    def _whole(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data


@dataclass(frozen=True, slots=True)
class OpenAiWire:
    """OpenAI's bodies as one server writes them.

    Attributes:
        prefixes: of the names of completions and chats.
        chat_delta: of a chat's frame, up to the text.
        tails: (chat, finish reason, stop reason) to what follows the text, up to the end of the choice.
        role_choice: a chat's first choice, with `{index}`; `role_extras` what stands after the choices there.
        no_usage: of a (completion, chat) frame without usage.
        usage: (prompt tokens, completion tokens) to the object.
        closing: (fingerprint) to what only the last frame with content has.
        apart: a chat's choice that says the finish reason alone: (index, finish reason, stop reason).
        choice: a whole answer's choice.
        body: what a whole answer has after its choices: (envelope, usage).
    """

    prefixes: tuple[str, str]
    chat_delta: str
    tails: Callable[[bool, str, str], str]
    role_choice: str
    role_extras: str
    no_usage: tuple[str, str]
    usage: Callable[[int, int], dict[str, Any]]
    closing: Callable[[str], str]
    choice: Callable[[bool, Ended], dict[str, Any]]
    body: Callable[[Envelope, dict[str, Any]], dict[str, Any]]
    apart: Callable[[int, str, str], str] | None = None
    terminator: bytes = DONE

    def answer_id(self, unique: str, *, chat: bool) -> str:
        """See `Wire`."""
        return self.prefixes[chat] + unique

    def frames(self, envelope: Envelope, index: int) -> TextFrames:
        """See `Wire`."""
        field = f'"delta":{self.chat_delta}' if envelope.chat else '"text":"'
        apart, opening = self.apart, self._opening(envelope)
        return TextFrames(
            envelope,
            f'{opening}{{"index":{index},{field}',
            lambda finish, stop: f"{self.tails(envelope.chat, finish, stop)}]",
            lambda usage, closes: self._extras(envelope, usage, closes=closes),
            (lambda finish, stop: f"{opening}{apart(index, finish, stop)}]") if apart and envelope.chat else None,
        )

    def role_frame(self, envelope: Envelope, index: int) -> bytes:
        """See `Wire`."""
        choice = self.role_choice.replace("{index}", str(index))
        return envelope.frame(f"{self._opening(envelope)}{choice}]{self.role_extras}}}\n\n".encode())

    def usage_frame(self, envelope: Envelope, prompt_tokens: int, completion_tokens: int) -> bytes:
        """See `Wire`."""
        extras = self._extras(envelope, (prompt_tokens, completion_tokens), closes=True)
        return envelope.frame(f"{self._opening(envelope)}]{extras}}}\n\n".encode())

    def whole(self, envelope: Envelope, choices: list[Ended], prompt_tokens: int) -> bytes:
        """See `Wire`."""
        usage = self.usage(prompt_tokens, sum(ended.tokens for ended in choices))
        body = {
            "id": envelope.answer_id,
            "object": "chat.completion" if envelope.chat else "text_completion",
            "created": envelope.created_s,
            "model": envelope.model,
            "choices": [self.choice(envelope.chat, ended) for ended in choices],
            **self.body(envelope, usage),
        }
        return compact(body).encode()

    def _opening(self, envelope: Envelope) -> str:
        """The event up to its choices."""
        kind = "chat.completion.chunk" if envelope.chat else "text_completion"
        return (
            f'data: {{"id":"{envelope.answer_id}","object":"{kind}","created":{envelope.created_s},'
            f'"model":{json.dumps(envelope.model)},"choices":['
        )

    def _extras(self, envelope: Envelope, usage: tuple[int, int] | None, *, closes: bool) -> str:
        counted = self.no_usage[envelope.chat] if usage is None else f',"usage":{compact(self.usage(*usage))}'
        return counted + (self.closing(envelope.fingerprint) if closes else "")


def compact(body: object) -> str:
    """JSON without blanks."""
    return json.dumps(body, separators=(",", ":"))
