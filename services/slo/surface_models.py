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
