"""Streams written by hand for tests: `(milliseconds, bytes)` reads and JSON events."""

from __future__ import annotations

import json
from typing import Any

from cliffwatch.stream import DIALECTS, ResponseReader, StreamResult

DONE = b"data: [DONE]\n\n"


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chat(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more})


def text(value: str | None, index: int = 0, finish: str | None = None, **more: Any) -> bytes:
    return event({"choices": [{"index": index, "text": value, "finish_reason": finish}], **more})


def usage(prompt: int, completion: int, **more: Any) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion, **more}})


def read(
    *reads: tuple[float, bytes],
    dialect: str = "completions",
    batch: int = 1,
    max_tokens: int | None = None,
    clean: bool = True,
) -> StreamResult:
    """The result of the reads; the stream ends at the last one's time."""
    reader = ResponseReader(DIALECTS[dialect], batch, max_tokens)
    for milliseconds, data in reads:
        reader.feed(round(milliseconds * 1e6), data)
    return reader.finish(round(reads[-1][0] * 1e6) if reads else 0, clean=clean)


def ms(stamp_ns: int | None) -> float | None:
    return None if stamp_ns is None else stamp_ns / 1e6
