"""Why latency jumps between two points: rules over what the engine showed at each, with the figures that speak for it.

A rule speaks only where both sides are known; where none does, the cause is not known. Several may hold at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cliffwatch.surface.scrapes import Seen

FULL = 0.95  # of the KV cache: the next request does not fit
BUSY = 0.85  # of the time: memory that is busy for longer is not seen, by its own waits
QUEUE = 0.1  # requests waiting, on average: fewer are those that just came
TWICE = 2.0


@dataclass(frozen=True, slots=True)
class Point:
    """One side of a jump.

    Attributes:
        requests: how many.
        prompt_tokens: to compute of one request, all its prompts; None where the axis and slice do not tell.
        sequences: that run together, by batch or concurrency; None likewise.
        seen: what the engine showed; None without scrapes.
    """

    requests: int
    prompt_tokens: float | None = None
    sequences: float | None = None
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the engine, as it was started; None where nobody said.

    Attributes:
        batched_tokens: the most tokens a step (`max_num_batched_tokens`): longer prompts are done in chunks.
        graph_sizes: batch sizes that CUDA graphs were captured for, ascending; steps are padded to the next one.
        sequences: the most that run at a time (`max_num_seqs`).
    """

    batched_tokens: int | None = None
    graph_sizes: tuple[int, ...] = ()
    sequences: int | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause and its evidence in words, with the figures of both sides."""

    name: str
    evidence: str


def causes(after: Point, before: Point, limits: Limits) -> tuple[Cause, ...]:
    """The causes of a jump from one point to the next that the evidence speaks for; none where it does not."""
    found = ((name, rule(after, before, limits)) for name, rule in RULES)
    return tuple(Cause(name, evidence) for name, evidence in found if evidence is not None)


def why_unknown(after: Point, before: Point) -> str:
    """What there is to say of a jump without a cause."""
    if after.seen is None or before.seen is None:
        return "no engine metrics over this run"
    if not after.seen.scrapes or not before.seen.scrapes:
        return "no scrape of the engine while the requests of both sides were under way"
    return "the engine's metrics show none of those looked for"


Rule = Callable[[Point, Point, Limits], str | None]


def _pair(after: Point, before: Point, reading: str) -> tuple[float, float] | None:
    """A reading on both sides; None where one of them is not known."""
    if after.seen is None or before.seen is None:
        return None
    low, high = getattr(after.seen, reading), getattr(before.seen, reading)
    return None if low is None or high is None else (low, high)


def _scrapes(after: Point, before: Point) -> str:
    """How many scrapes the readings of both sides are of."""
    return f" ({' and '.join(str(one.seen.scrapes) for one in (after, before) if one.seen)} scrapes)"


def _preempted(after: Point, before: Point, _limits: Limits) -> str | None:
    pair = _pair(after, before, "preemptions")
    if pair is None or not pair[1] / before.requests > TWICE * pair[0] / after.requests:
        return None
    return f"{pair[0]:g} preemptions over {after.requests} requests, then {pair[1]:g} over {before.requests}"


def _kv_full(after: Point, before: Point, _limits: Limits) -> str | None:
    pair = _pair(after, before, "kv_usage")
    if pair is None or not pair[0] < FULL <= pair[1]:
        return None
    return f"KV cache {pair[0]:.0%} in use at most, then {pair[1]:.0%}{_scrapes(after, before)}"


def _queued(after: Point, before: Point, limits: Limits) -> str | None:
    pair = _pair(after, before, "waiting")
    if pair is not None and pair[1] >= QUEUE and pair[1] > pair[0] * TWICE:
        return f"{pair[0]:.2g} requests waiting on average, then {pair[1]:.2g}{_scrapes(after, before)}"
    if not limits.sequences or not after.sequences or not before.sequences:
        return None
    if not after.sequences <= limits.sequences < before.sequences:
        return None
    return f"{before.sequences:g} sequences, of which {limits.sequences} may run at a time"


def _chunked(after: Point, before: Point, limits: Limits) -> str | None:
    """The first prompt that needs a second step: from there on steps grow as tokens do, and explain no jump."""
    if not limits.batched_tokens or not after.prompt_tokens or not before.prompt_tokens:
        return None
    steps = [math.ceil(point.prompt_tokens / limits.batched_tokens) for point in (after, before) if point.prompt_tokens]
    if steps[0] > 1 or steps[1] == 1:
        return None
    tokens = f"{after.prompt_tokens:g} prompt tokens to {before.prompt_tokens:g}"
    return f"{tokens}: one prefill step, then {steps[1]} (of {limits.batched_tokens} tokens at most)"


def _padded(after: Point, before: Point, limits: Limits) -> str | None:
    if not limits.graph_sizes or not after.sequences or not before.sequences:
        return None
    most = limits.graph_sizes[-1]
    if after.sequences <= most < before.sequences:
        return f"{before.sequences:g} sequences are more than the largest CUDA graph ({most})"
    if before.sequences > most:
        return None
    low, high = (_next(limits.graph_sizes, sequences) for sequences in (after.sequences, before.sequences))
    if high / low <= TWICE * before.sequences / after.sequences:
        return None
    return f"steps padded to {low}, then {high} sequences"


def _bandwidth(after: Point, before: Point, _limits: Limits) -> str | None:
    pair = _pair(after, before, "memory_busy")
    if pair is None or not pair[0] < BUSY <= pair[1]:
        return None
    return f"GPU memory busy {pair[0]:.0%} of the time, then {pair[1]:.0%}{_scrapes(after, before)}"


def _next(sizes: Sequence[int], wanted: float) -> int:
    return next(size for size in sizes if size >= wanted)


RULES: tuple[tuple[str, Rule], ...] = (
    ("preemption", _preempted),
    ("KV cache full", _kv_full),
    ("queueing", _queued),
    ("chunked prefill", _chunked),
    ("CUDA graph padding", _padded),
    ("memory bandwidth", _bandwidth),
)
