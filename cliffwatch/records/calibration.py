"""What the load generator's own measuring adds, as it was measured against a server of known latency."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Measured minus true, in seconds, over `n` values; the highest ones are late readings."""

    n: int
    p50_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One load: so many streams at a time, each with a first token and then one a `gap_s`.

    Attributes:
        name: `idle`, or `load` for the load of the run.
        ttft: error of the time to first token.
        itl: error of single gaps between chunks, without regard to sign.
        core_s_per_chunk: CPU time of the measuring process for each chunk, its part of the request included.
        streams, asked_streams: most that were open at once, and how many were to be: fewer where that is bounded.
    """

    name: str
    streams: int
    asked_streams: int
    gap_s: float
    ttft: Error
    itl: Error
    core_s_per_chunk: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A host's bias, from the idle level to that of a run; taken on the master's host, by one process."""

    levels: tuple[Level, ...]
    took_s: float

    @property
    def own(self) -> Level:
        """The level that is nearest to the run's load."""
        return self.levels[-1]
