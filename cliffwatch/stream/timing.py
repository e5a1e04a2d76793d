"""Token times of one prompt, and the figures made of them. Definitions and their reasons: docs/timing.md."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

STALL_FLOOR_US = 1_000_000
STALL_FACTOR = 10
_MAX_GAP_US = 2**32 - 1  # 71 minutes: the width of the column that holds gaps


class PromptTimes:
    """Stamps of one prompt's token-bearing chunks, in monotonic nanoseconds."""

    __slots__ = ("answer_ns", "chunks", "first_ns", "gaps_us", "last_ns")

    def __init__(self) -> None:
        self.first_ns: int | None = None
        self.answer_ns: int | None = None  # first chunk that is not reasoning
        self.last_ns: int | None = None
        self.chunks = 0
        self.gaps_us: list[int] = []

    def add(self, stamp_ns: int, *, reasoning: bool) -> None:
        """Count a token-bearing chunk that was read at `stamp_ns`."""
        if self.last_ns is None:
            self.first_ns = stamp_ns
        else:
            gap_us = (stamp_ns - self.last_ns + 500) // 1000
            self.gaps_us.append(min(_MAX_GAP_US, gap_us))
        self.last_ns = stamp_ns
        self.chunks += 1
        if self.answer_ns is None and not reasoning:
            self.answer_ns = stamp_ns

    def itl_s(self, tokens: float) -> float | None:
        """(last - first) / (tokens - 1); null under two tokens, and where one chunk or one read brought them all."""
        if self.first_ns is None or self.last_ns is None or self.last_ns <= self.first_ns or tokens < 2:
            return None
        return (self.last_ns - self.first_ns) / (tokens - 1) / 1e9


def mean_itl_s(prompts: Sequence[PromptTimes], tokens: Sequence[float]) -> float | None:
    """Mean over the prompts that have an inter-token latency; null when none has."""
    known = [itl for prompt, count in zip(prompts, tokens, strict=True) if (itl := prompt.itl_s(count)) is not None]
    return sum(known) / len(known) if known else None


def count_stalls(gaps_us: Sequence[int]) -> int:
    """Gaps over max(1 s, 10 x the median gap)."""
    if not gaps_us or max(gaps_us) <= STALL_FLOOR_US:  # the usual case needs no median
        return 0
    limit = max(STALL_FLOOR_US, STALL_FACTOR * median(gaps_us))
    return sum(gap > limit for gap in gaps_us)


def latest(stamps_ns: Sequence[int | None]) -> int | None:
    """The latest known instant: a batch's first token is its slowest prompt's."""
    return max([stamp for stamp in stamps_ns if stamp is not None], default=None)
