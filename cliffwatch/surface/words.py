"""What a surface answers, in sentences."""

from __future__ import annotations

from cliffwatch.surface.model import Answer
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
