"""What comparing two runs gives: frozen results, ready for JSON. Null is unknown; every figure has its n."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from cliffwatch.compare.metrics import Kind
from cliffwatch.records.manifest import Verdict, VerdictState


class Change(StrEnum):
    """`no_change_shown` is not "no change": see `FigureChange.ruled_out`."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    NO_CHANGE_SHOWN = "no_change_shown"
    TOO_FEW_DATA = "too_few_data"


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True)


class Interval(_Result):
    """A value and its interval; an end is null where data do not suffice, the value where nothing is known."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


class Side(Interval):
    """A figure of one run, over `n` requests; the interval is of confidence 1 - alpha."""

    n: int


class FigureChange(_Result):
    """One figure of both runs. Seconds, shares, or per second.

    Attributes:
        difference: new - base, with its interval of confidence 1 - alpha, not adjusted for the number of figures.
        relative: the same as a share of the base's value; null for shares, and where the base is 0.
        p_value, adjusted_p: of no difference, alone, and by Holm among all figures compared.
        threshold: least difference that matters, in units of the figure.
        ruled_out: a regression by the threshold or more lies outside the interval of the difference.
        needed_n: requests that each run must have.
    """

    metric: str
    label: str
    kind: Kind
    higher_is_worse: bool
    base: Side
    new: Side
    difference: Interval
    relative: Interval
    p_value: float | None
    adjusted_p: float | None
    threshold: float | None
    ruled_out: bool | None
    needed_n: int
    change: Change


class RunSide(_Result):
    """One of the two runs. `partial` says why it is not whole, null when it is."""

    dir: str
    run_id: str
    name: str
    model: str
    target: str
    engine: str | None
    verdict: Verdict | None
    partial: str | None

    @property
    def invalid(self) -> bool:
        return self.verdict is not None and self.verdict.state is VerdictState.INVALID


class Comparison(_Result):
    """Two runs compared.

    Attributes:
        slo: name of the SLO file that goodput is by; null where goodput was not compared.
        threshold: least relative change that matters; `threshold_points`: for shares, in points (0.005 is 0.5 points).
        remarks: what makes the runs less comparable than they should be, in sentences.
    """

    base: RunSide
    new: RunSide
    alpha: float
    threshold: float
    threshold_points: float
    slo: str | None
    remarks: tuple[str, ...]
    figures: tuple[FigureChange, ...]

    @property
    def invalid(self) -> tuple[str, ...]:
        """Which of the runs are INVALID: `base`, `new`."""
        return tuple(name for name, side in (("base", self.base), ("new", self.new)) if side.invalid)

    def having(self, change: Change) -> tuple[FigureChange, ...]:
        """The figures that changed so."""
        return tuple(one for one in self.figures if one.change is change)
