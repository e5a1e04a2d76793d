"""What is seen of a stream of requests, recorded or planned: columns, and the figures that a fit is judged by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.schedule import plan_blocks
from cliffwatch.workload.spec import Workload
from cliffwatch.workload.traces.replay import REPLAY_BLOCK, replay
from cliffwatch.workload.traces.rows import Repairs

MAX_OBSERVED = 2_000_000  # requests: some 100 MB
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Observed:
    """Requests as columns. `groups` counts, of each shared prefix, the requests that begin with it.

    `complete` says whether these are all there are.
    """

    times_ns: Ints
    input_tokens: Ints
    output_tokens: Ints
    shared_tokens: Ints
    groups: Counter[int]
    complete: bool

    @property
    def n(self) -> int:
        return len(self.times_ns)

    @property
    def span_s(self) -> float:
        """From the first request to the last, and one mean gap more: what n arrivals of that rate take."""
        return float(self.times_ns[-1]) / 1e9 * self.n / (self.n - 1)

    @property
    def gaps_s(self) -> Floats:
        return np.diff(self.times_ns) / 1e9

    @property
    def shared(self) -> float:
        """Share of all input tokens that an earlier prompt began with too."""
        return float(self.shared_tokens.sum() / self.input_tokens.sum())

    def window_counts(self, arrivals: int, most: int) -> Ints:
        """Arrivals in equal windows of the span, about so many in each; 2 windows at least and `most` at most."""
        windows = int(np.clip(self.n // arrivals, 2, most))
        place = np.minimum((self.times_ns / 1e9 / self.span_s * windows).astype(np.int64), windows - 1)
        return np.bincount(place, minlength=windows).astype(np.int64)


def dispersion(counts: Ints) -> float:
    """Variance over mean: 1 for Poisson counts, CV^2 of the gaps in long windows of a renewal process."""
    return float(counts.var(ddof=1) / counts.mean())


def cv(gaps: Floats) -> float:
    """Deviation over mean; 0 where all gaps are 0."""
    mean = float(gaps.mean())
    return float(gaps.std(ddof=1)) / mean if mean else 0.0


def of_trace(spec: TraceArrivals, repairs: Repairs, *, limit: int = MAX_OBSERVED) -> Observed:
    """The first `limit` requests of a trace. Raises InputError for lines that cannot be used, or fewer than 10."""
    parts: list[list[Ints]] = []
    groups: Counter[int] = Counter()
    total = 0
    for block in replay(spec, np.random.default_rng(42), REPLAY_BLOCK, repairs):
        parts.append([block.times_ns, block.input_tokens, block.output_tokens, block.shared_tokens])
        for ids, tokens in zip(block.blocks, block.shared_tokens.tolist(), strict=True):
            if tokens:
                groups[ids[-(-tokens // block.block_tokens) - 1]] += 1
        total += len(block.times_ns)
        if total > limit:
            break
    times, inputs, outputs, shared = (np.concatenate(column)[:limit] for column in zip(*parts, strict=True))
    if total < 10 or not times[-1]:
        raise InputError("has too few requests to fit", file=spec.file, value=total, allowed="10 at different times")
    if not (inputs.all() and outputs.all()):
        raise InputError("has no lengths to fit", file=spec.file)
    return Observed(times, inputs, outputs, shared, groups=groups, complete=total <= limit)


def of_workload(workload: Workload, n: int) -> Observed:
    """The first `n` planned requests."""
    parts: list[list[Ints]] = []
    total = 0
    for block in plan_blocks(workload):
        parts.append([block.intended_ns, block.input_tokens, block.output_tokens, block.prefix_tokens])
        total += len(block)
        if total >= n:
            break
    times, inputs, outputs, shared = (np.concatenate(column)[:n] for column in zip(*parts, strict=True))
    return Observed(times, inputs, outputs, shared, groups=Counter(), complete=total <= n)
