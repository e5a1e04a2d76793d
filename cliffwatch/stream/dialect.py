"""What every API dialect has in common: the request it writes and the chunks it reads.

A new server is one small file with a `Dialect` in it, added to `cliffwatch.stream.DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from cliffwatch.errors import CliffwatchError

Kind = Literal["answer", "reasoning", "tool"]


class NotTheDialectError(CliffwatchError):
    """The bytes are not what this dialect's servers send."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """A non-empty piece of generated text for the prompt `index`. Empty pieces are never deltas."""

    index: int
    text: str
    kind: Kind = "answer"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts as a server gave them; null where it gave none.

    `index` is the prompt they belong to, or null when the frame names no single prompt and so counts the request.
    """

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None = None
    index: int | None = None


class StreamFault(msgspec.Struct, frozen=True, gc=False):
    """An error the server reported inside the body."""

    message: str
    code: int | None = None


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One decoded event. `finish` maps a prompt's index to its finish reason; `done` marks the terminator."""

    deltas: tuple[Delta, ...] = ()
    usage: Usage | None = None
    finish: dict[int, str] = {}
    error: StreamFault | None = None
    done: bool = False


class Reading(Protocol):
    """One API's way of answering.

    Attributes:
        ends_by_close: a clean close alone completes a stream: the dialect has neither finish reason nor terminator.
    """

    @property
    def ends_by_close(self) -> bool: ...

    def decode(self, data: bytes) -> Chunk:
        """The chunk in one event's data, or in a whole (non-streamed) body.

        Raises:
            NotTheDialectError: it is not this dialect.
        """


class Dialect(Reading, Protocol):
    """One API's way of asking and answering.

    Attributes:
        name: its key in `DIALECTS`.
        path: where requests go; `{model}` in it stands for the model's name, percent-encoded.
        batches: one request may carry several prompts.
        counts: servers say how many tokens a prompt and its answer had.
        own_fields: the fields of a request's body that `encode` writes itself.
        spellings: sampling parameters that have another name here, or null where there is no such thing.
    """

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def batches(self) -> bool: ...

    @property
    def counts(self) -> bool: ...

    @property
    def own_fields(self) -> frozenset[str]: ...

    @property
    def spellings(self) -> Mapping[str, str | None]: ...

    def encode(self, *, model: str, prompts: Sequence[str], max_tokens: int, sampling: Mapping[str, object]) -> bytes:
        """The JSON body of a streaming request; `sampling` adds fields but replaces none of the dialect's own.

        Raises:
            InputError: the dialect cannot carry that many prompts.
        """


def spelled(dialect: Dialect, sampling: Mapping[str, object]) -> dict[str, object]:
    """Sampling parameters, given by their OpenAI and vLLM names, by the dialect's; what it has not is left out."""
    names = {name: dialect.spellings.get(name, name) for name in sampling}
    return {name: sampling[given] for given, name in names.items() if name is not None}
