"""What the API answers about surfaces: latencies between measured cells, and how the hardware was used."""

from __future__ import annotations

from pydantic import Field

from services.slo.models import Answer


class SurfaceAnswer(Answer):
    """A latency at a length and batch, tried or not."""

    run: str
    input_tokens: int = Field(description="Of a prompt.")
    batch: int = Field(description="Prompts in the request.")
    cache: str = Field(description="State of the prefix cache.")
    metric: str
    statistic: str
    value_s: float
    low_s: float = Field(description="Lower end of the interval: where a cell measured there would lie.")
    high_s: float = Field(description="Upper end of the interval.")
    coverage: float = Field(description="Share of cells that lie in such an interval.")
    extrapolated: bool = Field(description="Whether the place is outside what was measured.")
    near_cells: int = Field(description="Measured cells within an octave of length and batch.")
    near_n: int = Field(description="Requests in those.")
    cells: int = Field(description="Cells that the surface is fitted to.")
    checked: int = Field(description="Cells that were held out in turn for the interval.")
    says: list[str] = Field(description="The same in sentences.")


class BreakItem(Answer):
    """Where a curve begins to grow in another way."""

    at: float
    low: float = Field(description="Lower end of the 95 % interval.")
    high: float = Field(description="Upper end of it.")


class KneeItem(Answer):
    """One curve. Its tables have an entry a point."""

    of: str = Field(description="The value of the other dimension that it is of.")
    x: list[float] = Field(description="Where each point stands on the axis.")
    values: list[float] = Field(description="Geometric means.")
    lows: list[float | None] = Field(description="Lower ends of the 95 % intervals; null where no value was repeated.")
    highs: list[float | None]
    counts: list[int] = Field(description="Requests behind each.")
    corners: list[tuple[float, float]] = Field(description="Where the straight pieces begin, meet and end: [x, y].")
    breaks: list[BreakItem] = Field(description="The knees: none, one or two.")
    says: str = Field(description="The same in words; also why nothing can be said.")


class KneeCurves(Answer):
    """Curves of a metric along an axis, with their knees."""

    run: str
    metric: str
    label: str = Field(description="The metric in words.")
    unit: str
    axis: str
    axis_words: str
    by: str = Field(description="The other dimension: a curve for each of its values.")
    by_words: str
    curves: list[KneeItem]
    surest: str | None = Field(description="The curve to look at first: that of the surest knee; null without one.")


class KneeMove(Answer):
    """How far the first knee of a curve moved."""

    of: str
    ratio: float = Field(description="Of the place in this run to that in the other one.")
    low: float = Field(description="Lower end of the 95 % interval.")
    high: float
    shown: bool = Field(description="Whether the data show that it moved at all.")
    says: str


class KneeMoves(Answer):
    """How far knees moved between two runs, for each curve that has one in both."""

    run: str
    against: str
    metric: str
    axis: str
    moves: list[KneeMove]


class ShareTable(Answer):
    """Shares of a data sheet. Tables are indexed [row][column]; null where nothing was measured or it is not known."""

    values: list[list[float | None]]
    lows: list[list[float | None]] = Field(description="Lower ends of the 95 % intervals; null without repeats.")
    highs: list[list[float | None]]


class UseAnswer(Answer):
    """How much of the hardware each length and batch used."""

    run: str
    hardware: str
    model: str
    part: str
    metric: str = Field(description="The latency that is that part.")
    cache: str
    peak_flop_s: float = Field(description="Of all devices, by the data sheet.")
    bandwidth_byte_s: float
    rows: list[str] = Field(description="Input tokens a prompt.")
    columns: list[str] = Field(description="Prompts a request.")
    counts: list[list[int]]
    arithmetic: ShareTable = Field(description="Operations used (MFU).")
    bandwidth: ShareTable = Field(description="Memory bandwidth used.")
    says: list[str] = Field(description="What the shares are of, and how sure they are.")
