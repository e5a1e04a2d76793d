"""Token counts of a request from what the server said, checked against what was counted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cliffwatch.records.schema import TokenSource
from cliffwatch.stream.dialect import Usage


class TokenCounts(msgspec.Struct, frozen=True, gc=False):
    """Counts over all prompts; `per_prompt` output tokens may be fractions where they had to be apportioned."""

    input_tokens: int | None
    output_tokens: int | None
    source: TokenSource | None
    cached_tokens: int | None
    per_prompt: tuple[float, ...]
    warnings: tuple[str, ...]


class UsageLedger:
    """Collects usage frames. The last one wins, field by field, so continuous usage and repeated frames are harmless.

    A frame that names one prompt of a batch counts that prompt alone (llama.cpp, vLLM's continuous usage); a frame
    that names none, or comes in a request of one prompt, counts the request.
    """

    __slots__ = ("_by_index", "_prompts", "_refused", "_total")

    def __init__(self, prompts: int) -> None:
        self._prompts = prompts
        self._total: Usage | None = None
        self._by_index: dict[int, Usage] = {}
        self._refused = False

    def add(self, usage: Usage) -> None:
        """Take one frame."""
        if usage.index is None or self._prompts == 1:
            self._total = self._merged(self._total, usage)
        else:
            self._by_index[usage.index] = self._merged(self._by_index.get(usage.index), usage)

    def counts(self, chunks: Sequence[int], max_tokens: int | None, *, all_at_limit: bool) -> TokenCounts:
        """Settle the counts.

        Args:
            chunks: token-bearing chunks of each prompt; zeros where a whole body tells nothing of chunks.
            max_tokens: the limit a prompt, as asked.
            all_at_limit: every prompt ended with finish reason `length`.
        """
        counted = sum(chunks)
        usage, warnings = self._settle()
        if self._refused:
            warnings.append("usage holds a value that is no token count; it is ignored")
        output = usage.output_tokens
        if output is not None:
            warnings += self._contradictions(output, counted, max_tokens, all_at_limit)
        source = None if output is None else TokenSource.SERVER
        if not output and counted:
            output, source = counted, TokenSource.CHUNKS
        return TokenCounts(
            usage.input_tokens, output, source, usage.cached_tokens, self._per_prompt(output, chunks), tuple(warnings)
        )

    def _merged(self, old: Usage | None, new: Usage) -> Usage:
        old = old or Usage(None, None)
        return Usage(
            self._newer(old.input_tokens, new.input_tokens),
            self._newer(old.output_tokens, new.output_tokens),
            self._newer(old.cached_tokens, new.cached_tokens),
            new.index,
        )

    def _newer(self, old: int | None, new: int | None) -> int | None:
        if new is not None and new < 0:
            self._refused = True
            return old
        return old if new is None else new

    def _settle(self) -> tuple[Usage, list[str]]:
        if self._total is not None:
            return self._total, []
        frames = [self._by_index[index] for index in sorted(self._by_index)]
        if len(frames) == self._prompts:
            return (
                Usage(
                    _sum([frame.input_tokens for frame in frames]),
                    _sum([frame.output_tokens for frame in frames]),
                    _sum([frame.cached_tokens for frame in frames]),
                ),
                [],
            )
        missing = [f"usage names {len(frames)} of {self._prompts} prompts; it is ignored"] if frames else []
        return Usage(None, None), missing

    def _contradictions(self, output: int, counted: int, max_tokens: int | None, all_at_limit: bool) -> list[str]:
        found = []
        if output < counted:
            found.append(f"usage says {output} output tokens, but {counted} chunks carried text")
        limit = None if max_tokens is None else max_tokens * self._prompts
        if limit is not None and output > limit:
            found.append(f"usage says {output} output tokens, but {limit} was the most allowed")
        elif limit is not None and all_at_limit and output < limit:
            found.append(f"usage says {output} output tokens, but every prompt ended at its limit, {limit} in all")
        return found

    def _per_prompt(self, output: int | None, chunks: Sequence[int]) -> tuple[float, ...]:
        """The server's own count of each prompt where it adds up, else the total apportioned by chunks."""
        if self._prompts == 1:
            return (float(output or 0) if chunks[0] else 0.0,)
        own = [self._by_index[i].output_tokens if i in self._by_index else None for i in range(self._prompts)]
        known = [count for count in own if count is not None]
        if len(known) == self._prompts and sum(known) == output:
            return tuple(known)
        counted = sum(chunks)
        return tuple((output or 0) * count / counted if counted else 0.0 for count in chunks)


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
