"""What the API answers about grids and their cells. Unknown is null; every figure stands beside its n."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from services.slo.models import Answer


class AxisItem(Answer):
    """One side of a heatmap. `keys`, `labels` and `spans` have one entry a row (or column)."""

    name: str = Field(description="The dimension.")
    words: str = Field(description="The dimension in words.")
    unit: str = Field(description="Of its values; empty for words.")
    scale: str = Field(description="`values` (one bin a value), `log` or `linear`.")
    why: str = Field(description="The rule that chose the bins.")
    keys: list[str] = Field(description="What a row (or column) is called in questions about its cells.")
    labels: list[str]
    middles: list[float] | None = Field(description="Where each stands on a plot's axis; null for words.")
    spans: list[tuple[float, float] | None] = Field(
        description="From the first value up to the second, which only the last bin holds as well; null for words."
    )


class Heatmap(Answer):
    """A statistic of a metric over two dimensions. All tables are indexed [row][column]."""

    run: str
    metric: str
    label: str = Field(description="The metric in words.")
    unit: str
    statistic: str
    phase: str
    facet: str | None = Field(description="What of the third dimension it is of; null without one.")
    rows: AxisItem
    columns: AxisItem
    values: list[list[float | None]] = Field(description="Null where too few requests fell in the cell.")
    lows: list[list[float | None]] = Field(description="Lower end of the 95 % interval; null where there is none.")
    highs: list[list[float | None]] = Field(description="Upper end of the 95 % interval.")
    counts: list[list[int]] = Field(description="The requests behind each value.")
    few: list[list[bool]] = Field(description="Cells whose value has fewer samples than its percentile asks for.")
    n: int = Field(description="Sum of the counts.")
    unplaced: int = Field(description="Requests with the metric but without a row or column (of all facets).")
    note: str | None = Field(description="`no data yet` where n is 0.")


class Heatmaps(Answer):
    """One heatmap for each value of a third dimension."""

    run: str
    facet: str = Field(description="The third dimension.")
    heatmaps: list[Heatmap]
    says: list[str | None] = Field(description="For each: where its columns differ the most; null where none do.")


class FindingItem(Answer):
    """A jump from the row before to this one."""

    kind: str = Field(description="`cliff`, or `steepest` where there is no cliff.")
    row: str = Field(description="Key of the row that it jumps up to.")
    column: str = Field(description="Key of its column.")
    says: str


class Findings(Answer):
    """What a heatmap shows: its cliffs, or its steepest step."""

    run: str
    says: str = Field(description="In a sentence or two; also why nothing can be said.")
    found: list[FindingItem] = Field(description="Every one, the greatest first.")


class CellRequest(Answer):
    """One request of a cell: how it went, never what was in it."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    request_id: int
    time_s: float = Field(description="When it was due, seconds into the run.")
    metric: float | None = Field(description="The heatmap's metric; null for a request that does not count in it.")
    worker: int
    replica: str | None = Field(description="Which one answered, where a header said so.")
    phase: str
    model: str
    cache: str
    batch: int
    input_tokens: int
    output_tokens: int | None
    outcome: str
    error: str | None
    ttft_s: float | None
    itl_s: float | None
    e2e_s: float | None


class CellRequests(Answer):
    """The requests of one cell, a page of them."""

    run: str
    metric: str
    label: str
    unit: str
    n: int = Field(description="Requests in the cell, whatever their outcome.")
    counted: int = Field(description="Those that ended ok and have the metric.")
    offset: int
    requests: list[CellRequest]


class RequestCell(Answer):
    """Where a request lies in a heatmap: a place is (time, replica, row, column)."""

    run: str
    request_id: int
    phase: str
    time_s: float = Field(description="When it was due, seconds into the run.")
    replica: str | None
    row: str | None = Field(description="Key of its row; null where the request has no such value.")
    column: str | None = Field(description="Key of its column.")
    row_value: str | None = Field(description="What the request has of the rows' dimension.")
    column_value: str | None = Field(description="What the request has of the columns' dimension.")
