"""An answer as it goes over the wire: made once, sent to all who ask."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Encoded:
    """JSON, with the ETag of its content."""

    text: bytes
    tag: str

    def __len__(self) -> int:
        return len(self.text)


def encoded(answer: BaseModel) -> Encoded:
    """`answer` tagged by its content: for what can change without a row being written."""
    text = json_of(answer)
    return Encoded(text, tag_of(text.decode()))


def json_of(answer: BaseModel) -> bytes:
    """`answer` alone: for what is tagged by the rows it comes from."""
    return answer.model_dump_json().encode()


def tag_of(*parts: str) -> str:
    """An ETag that is another for other parts."""
    return f'"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:24]}"'
