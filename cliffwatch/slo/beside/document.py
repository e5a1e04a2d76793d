"""A run beside the engine that served it: figures of both sides over the same time, and where the time between went.

Means of the same events may be subtracted, percentiles may not: of a distribution only the engine's own bucket counts
are laid beside ours, as bounds at each objective's threshold.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class MeanDocument(_Document):
    """A mean in seconds (null without events) and the number of events behind it."""

    mean_s: float | None
    n: int


class FigureBeside(_Document):
    """One figure on both sides; a side is null where it does not tell it, and `lacking` says why for the engine."""

    figure: str
    label: str
    client: MeanDocument | None = Field(description="From sent to the stamp of our own socket.")
    engine: MeanDocument | None = Field(description="By the engine's own histogram.")
    difference_s: float | None = Field(description="Client's mean minus the engine's.")
    lacking: str | None


class Part(_Document):
    """One part of a mean; null: not known."""

    name: str
    mean_s: float | None


class Breakdown(_Document):
    """The client's mean of a figure as a sum of parts; `client` is the only one that can be negative by noise."""

    figure: str
    label: str
    client_s: float | None
    parts: tuple[Part, ...]


class ShareBeside(_Document):
    """The share at most `threshold_s`; the engine's lies between those of the bucket edges around it."""

    label: str
    threshold_s: float
    client: float | None
    client_n: int
    low: float | None
    high: float | None
    low_edge_s: float | None
    high_edge_s: float | None
    engine_n: int


class Beside(_Document):
    """Both sides of one run."""

    run_id: str
    engine: str
    match: dict[str, str] = Field(description="Labels of the series that were read.")
    run_from_unix_s: float
    run_to_unix_s: float
    from_unix_s: float | None = Field(description="The engine's first sample that was used; null: there is none.")
    to_unix_s: float | None
    whole: bool = Field(description="The samples cover the whole run; else only requests inside them are compared.")
    sent: int = Field(description="Prompts that the run sent in that time, each attempt and phase counted.")
    ours: int = Field(description="Of those, answered with a token.")
    served: int | None = Field(description="First tokens that the engine counted; null: not known.")
    same: bool | None = Field(description="Both counted the same requests, to 1 %.")
    across: int = Field(description="Requests under way at an end of that time; they are in no figure of ours.")
    figures: tuple[FigureBeside, ...]
    breakdowns: tuple[Breakdown, ...]
    shares: tuple[ShareBeside, ...]
    notes: tuple[str, ...]
