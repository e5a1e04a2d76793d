"""From stamped reads of one response to its outcome and token times."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import msgspec

from cliffwatch.errors import CliffwatchError
from cliffwatch.records.schema import Outcome, TokenSource
from cliffwatch.stream.dialect import Chunk, NotTheDialectError, Reading, StreamFault
from cliffwatch.stream.openai_wire import tidy
from cliffwatch.stream.sse import Event, SseParser
from cliffwatch.stream.timing import PromptTimes, count_stalls, latest, mean_itl_s
from cliffwatch.stream.usage import TokenCounts, UsageLedger

# Finish reasons by which an engine says that it gave a prompt up.
FAULT_REASONS = frozenset({"error", "abort"})
_AT_LIMIT = frozenset({"length"})


class StreamResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one response amounted to; the fields that `RequestRow` has too mean the same there.

    Times are absolute monotonic nanoseconds. `prompt_first_ns` has one entry a prompt, by index.
    """

    outcome: Outcome
    error: str | None = None
    first_token_ns: int | None = None
    first_answer_ns: int | None = None
    last_token_ns: int | None = None
    itl_s: float | None = None
    chunks: int = 0
    stalls: int = 0
    chunk_gaps_us: list[int] | None = None
    prompt_first_ns: tuple[int | None, ...] = ()
    output_tokens: int | None = None
    output_tokens_source: TokenSource | None = None
    server_input_tokens: int | None = None
    cached_input_tokens: int | None = None
    finish_reason: str | None = None
    warnings: tuple[str, ...] = ()


class ResponseReader:
    """Reads one HTTP 200 response. Never raises on what a server sends: that is what outcomes are for.

    Attributes:
        done: nothing that follows can matter: terminator or error seen, or the bytes are not the dialect.
    """

    __slots__ = ("_began", "_decode", "_dialect", "_fault", "_finish", "_max_tokens", "_parser", "_prompts",
                 "_terminated", "_usage", "_wrong", "chunks", "done")  # fmt: skip

    def __init__(self, dialect: Reading, batch: int, max_tokens: int | None = None) -> None:
        """Args: `batch`, the answers expected (prompts sent); `max_tokens`, the limit asked of each, for checks."""
        self._dialect = dialect
        self._decode = dialect.decode
        self._max_tokens = max_tokens
        self._parser = SseParser()
        self._prompts = [PromptTimes() for _ in range(batch)]
        self._usage = UsageLedger(batch)
        self._finish: dict[int, str] = {}
        self._fault: StreamFault | None = None
        self._wrong: str | None = None
        self._began = False  # an event came, if only half of one
        self._terminated = False
        self.done = False
        self.chunks = 0

    @property
    def tokens_started(self) -> bool:
        """Whether any token-bearing chunk has come."""
        return self.chunks > 0

    @property
    def last_token_ns(self) -> int | None:
        """When the latest token-bearing chunk was read."""
        return latest([prompt.last_ns for prompt in self._prompts])

    def feed(self, stamp_ns: int, data: bytes) -> None:
        """Take the body bytes of one read, stamped right after it. Stamps never decrease."""
        if self.done:
            return
        try:
            self._take_all(self._parser.feed(stamp_ns, data))
        except CliffwatchError as error:
            self._refuse(str(error))

    def feed_whole(self, stamp_ns: int, body: bytes) -> None:
        """Take a complete non-streamed body. It tells nothing of first tokens: only when the answer was there."""
        try:
            chunk = self._decode(body)
            self._settle(chunk)
            for delta in chunk.deltas:
                self._prompt(delta.index).last_ns = stamp_ns
        except NotTheDialectError as error:
            self._refuse(str(error))
            return
        self._terminated = self.done = True

    def finish(self, stamp_ns: int, *, clean: bool) -> StreamResult:
        """The result, the body having ended at `stamp_ns`.

        `clean`: the HTTP message ended as its framing said (or, without framing, the connection was closed in order).
        """
        if clean and not self.done:
            self._flush(stamp_ns)
        outcome, error = self._outcome(clean)
        reasons = frozenset(self._finish.values())
        at_limit = reasons == _AT_LIMIT and len(self._finish) == len(self._prompts)
        counts = self._usage.counts([p.chunks for p in self._prompts], self._max_tokens, all_at_limit=at_limit)
        gaps_us = list(chain.from_iterable([prompt.gaps_us for prompt in self._prompts]))
        firsts = [prompt.first_ns for prompt in self._prompts]
        ends = [prompt.last_ns for prompt in self._prompts]
        return StreamResult(
            outcome=outcome,
            error=error,
            first_token_ns=latest(firsts),
            first_answer_ns=latest([prompt.answer_ns for prompt in self._prompts]),
            last_token_ns=latest(ends),
            itl_s=mean_itl_s(self._prompts, counts.per_prompt),
            chunks=self.chunks,
            stalls=count_stalls(gaps_us),
            chunk_gaps_us=gaps_us or None,
            prompt_first_ns=tuple(firsts),
            output_tokens=counts.output_tokens,
            output_tokens_source=counts.source,
            server_input_tokens=counts.input_tokens,
            cached_input_tokens=counts.cached_tokens,
            finish_reason=_in_words(reasons),
            warnings=tuple(self._warnings(outcome, counts, ends)),
        )

    def _take_all(self, events: list[Event]) -> None:
        for event in events:
            if self.done:
                return
            data = event.data.strip()
            if not data:
                continue
            self._began = True
            chunk = self._decode(data)
            if event.event == "error" and chunk.error is None:
                chunk = Chunk(error=StreamFault(tidy(data.decode("utf-8", "replace"))))
            for delta in chunk.deltas:
                self._prompt(delta.index).add(event.stamp_ns, reasoning=delta.kind == "reasoning")
                self.chunks += 1
            if chunk.usage or chunk.finish or chunk.error or chunk.done:
                self._settle(chunk)

    def _settle(self, chunk: Chunk) -> None:
        """Everything of a chunk but its text."""
        for index in chunk.finish:
            self._prompt(index)
        if chunk.usage is not None:
            self._prompt(chunk.usage.index or 0)
            self._usage.add(chunk.usage)
        self._finish.update(chunk.finish)
        if chunk.error is not None:
            self._fault = chunk.error
        self._terminated = self._terminated or chunk.done
        self.done = self._terminated or self._fault is not None

    def _prompt(self, index: int) -> PromptTimes:
        """The prompt an answer names. Raises NotTheDialectError where none of that number was sent."""
        if not 0 <= index < len(self._prompts):
            raise NotTheDialectError(
                "the answer names a prompt that was not sent", value=index, allowed=f"0 to {len(self._prompts) - 1}"
            )
        return self._prompts[index]

    def _refuse(self, reason: str) -> None:
        self._wrong = reason
        self.done = True

    def _flush(self, stamp_ns: int) -> None:
        """Take what a clean end left unterminated. Half an event is a cut stream, not a foreign one."""
        try:
            self._take_all(self._parser.close(stamp_ns))
        except NotTheDialectError:
            return
        except CliffwatchError as error:
            self._refuse(str(error))
        if not self._began and self._parser.stray:
            self._judge_stray(self._parser.stray)

    def _judge_stray(self, stray: bytes) -> None:
        """No event came, but other text: an error object that nobody framed, or something that is no stream at all."""
        try:
            fault = self._decode(stray).error
        except NotTheDialectError:
            fault = None
        if fault is None:
            self._refuse(f"not an event stream; it begins {tidy(stray.decode('utf-8', 'replace'), 80)!r}")
        self._fault = fault

    def _outcome(self, clean: bool) -> tuple[Outcome, str | None]:
        if self._wrong is not None:
            return Outcome.PROTOCOL, self._wrong
        if self._fault is not None:
            return Outcome.STREAM_ERROR, self._fault.message
        if not FAULT_REASONS.isdisjoint(self._finish.values()):
            given_up = FAULT_REASONS.intersection(self._finish.values())
            return Outcome.STREAM_ERROR, f"the engine ended a prompt with finish reason {min(given_up)!r}"
        answered = clean and (self._dialect.ends_by_close or len(self._finish) == len(self._prompts))
        if not self._terminated and not answered and (self._began or not clean):
            return Outcome.TRUNCATED, "the stream ended without finish reason or terminator"
        return self._completeness()

    def _completeness(self) -> tuple[Outcome, str | None]:
        """The outcome of a stream that ended in order."""
        silent = [i for i, prompt in enumerate(self._prompts) if prompt.last_ns is None]
        if not silent:
            return Outcome.OK, None
        unanswered = [i for i in silent if i not in self._finish]
        if len(silent) == len(self._prompts):
            return Outcome.EMPTY, "HTTP 200, but no token with text"
        if unanswered:
            return Outcome.EMPTY, f"HTTP 200, but no answer for {len(unanswered)} of {len(self._prompts)} prompts"
        return Outcome.OK, None

    def _warnings(self, outcome: Outcome, counts: TokenCounts, ends: list[int | None]) -> list[str]:
        """Contradictions worth a look; a failed request's usage is not held against it."""
        if outcome is not Outcome.OK:
            return []
        found = list(counts.warnings)
        if None in ends:
            found.append(f"{ends.count(None)} of {len(ends)} prompts ended without text")
        return found


@lru_cache(maxsize=256)
def _in_words(reasons: frozenset[str]) -> str | None:
    """Finish reasons of all prompts as one short text; the same few come again and again."""
    return tidy("+".join(sorted(reasons)), 64) or None
