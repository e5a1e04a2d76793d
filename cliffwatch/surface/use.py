"""How much of the hardware each cell of a surface used: of its arithmetic (MFU) and of its memory bandwidth.

A share is the work that the model needs by the roofline, over what the data sheet could have done in the time that the
cell took. Work that the engine does beyond it (padding, weights read again for each chunk of a prompt) is not counted,
so a share is of useful work, and what is missing to 1 is where time goes otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cliffwatch.errors import InputError
from cliffwatch.roofline.step import Deployment, StepShape, StepWork, work_of
from cliffwatch.surface.cells import CONFIDENCE
from cliffwatch.surface.measured import BINS_AN_OCTAVE, UNCACHED, UNKNOWN, MeasuredCells
from cliffwatch.surface.series import pooled_spread
from cliffwatch.units import format_tokens


@dataclass(frozen=True, slots=True)
class Share:
    """Of a data sheet's promise; `low` and `high` by the scatter of the latency, None where nothing was repeated."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class UsedCell:
    """A cell: length and batch, requests, and the shares used; None where the output length is not known."""

    input_tokens: float
    batch: int
    n: int
    arithmetic: Share | None
    bandwidth: Share | None


@dataclass(frozen=True, slots=True)
class UseTable:
    """Cells as a table: `cells[r][c]` of the length `rows[r]` and the batch `batches[c]`; None where nothing was."""

    rows: tuple[str, ...]
    batches: tuple[int, ...]
    cells: tuple[tuple[UsedCell | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a request's time.

    Attributes:
        metric: the latency that is that part.
        work: operations and bytes of it, for a prompt length, a batch and output tokens a prompt.
        prefills: whether prompts are computed in it, so that cached tokens would have to be known.
    """

    metric: str
    work: Callable[[Deployment, float, int, float], tuple[float, float]]
    prefills: bool


def use(deployment: Deployment, cells: MeasuredCells, part: str) -> tuple[UsedCell, ...]:
    """The shares used in each cell, in order of batch and length.

    Args:
        deployment: the model on the hardware that was measured.
        cells: of the metric of `PARTS[part]`.
        part: a key of `PARTS`.

    Raises:
        InputError: no such part, prompts of a cached state (how many tokens were computed is not known), or a number
            format that the hardware cannot compute in.
    """
    if part not in PARTS:
        raise InputError("unknown part", field="part", value=part, allowed=", ".join(PARTS))
    if PARTS[part].prefills and cells.cache not in {UNCACHED, UNKNOWN}:
        raise InputError(
            "how many of its tokens were cached is not known",
            field="cache",
            value=cells.cache,
            allowed=", ".join(name for name, one in PARTS.items() if not one.prefills),
        )
    spread, spare = pooled_spread([np.log(values) for values in cells.values_s])
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, spare)) * spread if spare else None
    sides = zip(cells.input_tokens.tolist(), cells.batch.tolist(), cells.output_tokens.tolist(), strict=True)
    found = []
    for (tokens, batch, outputs), seconds, n in zip(sides, np.exp(cells.log_centres), cells.n.tolist(), strict=True):
        flops, moved = PARTS[part].work(deployment, tokens, int(batch), outputs)
        half = None if reach is None else math.exp(reach / math.sqrt(n))
        shares = (
            _share(flops / deployment.peak_flop_s / seconds, half),
            _share(moved / deployment.bandwidth_byte_s / seconds, half),
        )
        found.append(UsedCell(tokens, int(batch), n, *shares))
    return tuple(found)


def laid(used: Sequence[UsedCell]) -> UseTable:
    """The cells with a row a length; of traffic, whose lengths lie close together, a row a quarter octave (`~1218`)."""
    places = np.log2(np.unique([one.input_tokens for one in used]))
    apart = bool((np.diff(places) > 0.5 / BINS_AN_OCTAVE).all())

    def row(tokens: float) -> float:
        return tokens if apart else 2.0 ** (round(math.log2(tokens) * BINS_AN_OCTAVE) / BINS_AN_OCTAVE)

    by_place = {(row(one.input_tokens), one.batch): one for one in used}
    lengths, batches = (sorted(set(side)) for side in zip(*by_place, strict=True))
    return UseTable(
        tuple(f"{'' if apart else '~'}{format_tokens(round(length))}" for length in lengths),
        tuple(batches),
        tuple(tuple(by_place.get((length, batch)) for batch in batches) for length in lengths),
    )


def _share(value: float, half: float | None) -> Share | None:
    if math.isnan(value):
        return None
    return Share(value, *((None, None) if half is None else (value / half, value * half)))


def _prefill(deployment: Deployment, tokens: float, batch: int, _outputs: float) -> tuple[float, float]:
    prompt = StepShape.prompt(round(tokens))
    shape = StepShape(batch * prompt.prefill_tokens, batch * prompt.prefill_pairs, 0, batch)
    return _sums(work_of(deployment, shape))


def _step(deployment: Deployment, tokens: float, batch: int, outputs: float) -> tuple[float, float]:
    """A decode step in the middle of the answers: of a token for each sequence."""
    if math.isnan(outputs):
        return math.nan, math.nan
    return _sums(work_of(deployment, StepShape(sequences=batch, context_tokens=round(batch * (tokens + outputs / 2)))))


def _whole(deployment: Deployment, tokens: float, batch: int, outputs: float) -> tuple[float, float]:
    """The prompts, and a step for each token after the first."""
    prompts, step = _prefill(deployment, tokens, batch, outputs), _step(deployment, tokens, batch, outputs)
    flops, moved = (one + (outputs - 1) * other for one, other in zip(prompts, step, strict=True))
    return flops, moved


def _sums(work: StepWork) -> tuple[float, float]:
    return work.flops, work.bytes


PARTS = {
    "prefill": Part("ttft_s", _prefill, True),
    "decode": Part("itl_s", _step, False),
    "request": Part("e2e_s", _whole, True),
}
