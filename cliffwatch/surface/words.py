"""What a surface answers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from cliffwatch.records.figures import FIGURES
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.drift import Shift
from cliffwatch.surface.knee import Knee
from cliffwatch.surface.model import Answer
from cliffwatch.surface.use import UsedCell
from cliffwatch.units import format_seconds, format_share, format_tokens


def said(answer: Answer) -> tuple[str, ...]:
    """The latency with its interval, what it rests on, and whether it is outside what was measured."""
    place = f"{format_tokens(answer.input_tokens)} x {answer.batch}, cache {answer.cache}"
    value, low, high = (format_seconds(seconds) for seconds in (answer.value_s, answer.low_s, answer.high_s))
    interval = f"{format_share(answer.coverage)} interval {low} to {high}"
    sentences = (
        f"{answer.statistic} of {answer.metric} at {place}: {value} ({interval})",
        f"{answer.near_n} requests in {answer.near_cells} cells within an octave; {answer.cells} cells in all",
    )
    if not answer.extrapolated:
        return sentences
    return (*sentences, "outside what was measured: extrapolated, and how wide the interval must be there is not known")


def said_knee(found: Knee, metric: str) -> str:
    """Where the pieces of a curve meet, what they are and how high they stand there."""
    if found.too_few is not None:
        return f"too little data to say ({found.too_few}; n {found.n})"
    if not found.breaks:
        return f"no knee over {found.points} points (n {found.n}): {found.phases[0]} all along"
    places = " and ".join(written_place(each.at, each.low, each.high) for each in found.breaks)
    levels = ", ".join(written_value(level, metric) for level in found.levels)
    return f"at {places}: {', then '.join(_pieces(found))}; {levels} at the ends and knees (n {found.n})"


def _pieces(found: Knee) -> Iterator[str]:
    """Each phase; of two alike in a row it says whether the second one is steeper."""
    yield found.phases[0]
    for (before, phase), (slope, steeper) in zip(pairwise(found.phases), pairwise(map(abs, found.slopes)), strict=True):
        yield phase if phase != before else f"{phase} {'faster' if steeper > slope else 'more slowly'}"


def written_place(at: float, low: float, high: float) -> str:
    """A place on an axis with its interval."""
    at_text, low_text, high_text = (f"{value:,.0f}" if value >= 100 else f"{value:.4g}" for value in (at, low, high))
    return f"{at_text} (95 %: {low_text} to {high_text})"


def written_value(value: float, metric: str) -> str:
    """A value of a metric with its unit."""
    unit = FIGURES[metric].unit
    return format_seconds(value) if unit == "s" else f"{value:.4g} {unit}"


def said_move(moved: Shift) -> str:
    """How far a knee moved."""
    said = f"{moved.ratio - 1:+.0%} (95 %: {moved.low - 1:+.0%} to {moved.high - 1:+.0%})"
    return said if moved.shown else f"{said}: no move shown"


def said_use(deployment: Deployment, used: Sequence[UsedCell]) -> list[str]:
    """What shares of hardware are of, and how sure they are."""
    sheet = f"{deployment.peak_flop_s / 1e12:.0f} TFLOP/s and {deployment.bandwidth_byte_s / 1e12:.3g} TB/s"
    notes = [
        f"{deployment.model.name} on {deployment.hardware.name}: {sheet} in all; what other requests used is left out"
    ]
    numbers = {one.n for one in used}
    if len(numbers) == 1:
        notes.append(f"n {numbers.pop()} in each cell")
    shares = [share for one in used for share in (one.arithmetic, one.bandwidth) if share is not None]
    spreads = [share.high / share.value for share in shares if share.high is not None]
    if spreads:
        notes.append(f"95 % interval of each: within a factor of {max(spreads):.3g}, by the scatter of the requests")
    else:
        notes.append("no cell has two requests: how sure a share is, is not known")
    if len(shares) < 2 * len(used):
        notes.append("? output lengths are not known")
    if any((share.low or share.value) > 1 for share in shares):
        notes.append(
            "over 100 %: sequences that share cached tokens may read them once; else it is not that hardware, model,"
            " number format or number of devices"
        )
    return notes
