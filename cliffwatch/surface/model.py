"""What an untried point would cost: a latency between measured lengths and batches, with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.stats import sample_needs
from cliffwatch.surface.cells import PERCENTILES, Array
from cliffwatch.surface.hull import Hull
from cliffwatch.surface.measured import MeasuredCells
from cliffwatch.surface.model_candidates import CANDIDATES, Predict
from cliffwatch.surface.model_check import Held, leave_cell_out
from cliffwatch.units import format_seconds, format_tokens

WINNER = "work+radial"  # of benchmarks/surface_models.py
COVERAGE = 0.9
NEAR_OCTAVES = 1.0
FAR_OCTAVES = 3.0  # from the nearest cell: further out no extrapolation is answered
LEAST_DISTINCT = 3
STATISTICS = (*PERCENTILES, "mean")


@dataclass(frozen=True, slots=True)
class Answer:
    """A latency at a place.

    Attributes:
        input_tokens, batch, cache, metric, statistic: what was asked.
        value_s: the answer in seconds.
        low_s, high_s: where a cell measured there would lie at `coverage`, by the errors at cells held out.
        extrapolated: whether the place is outside what was measured; the interval is then wider by as many times as
            the place is octaves from the nearest cell.
        near_cells, near_n: measured cells within one octave of length and of batch, and their requests.
        cells, checked: cells that the surface is fitted to, and those that were held out in turn for the interval.
    """

    input_tokens: int
    batch: int
    cache: str
    metric: str
    statistic: str
    value_s: float
    low_s: float
    high_s: float
    coverage: float
    extrapolated: bool
    near_cells: int
    near_n: int
    cells: int
    checked: int


class Surface:
    """A latency over length and batch, fitted to measured cells of one state of the cache."""

    def __init__(self, cells: MeasuredCells, model: str = WINNER) -> None:
        """Raises InputError: no such model, or too few cells to fit it and to know its error."""
        if model not in CANDIDATES:
            raise InputError("unknown model", field="model", value=model, allowed=", ".join(CANDIDATES))
        self.cells = cells
        self._hull = Hull(cells.places)
        for side, values in {"input_tokens": cells.input_tokens, "batch": cells.batch}.items():
            if (distinct := np.unique(values).size) < LEAST_DISTINCT:
                raise InputError(
                    "has too few measured values for a surface",
                    field=side,
                    value=distinct,
                    allowed=f"{LEAST_DISTINCT} or more",
                )
        fit, least = CANDIDATES[model], _least_checked()
        self.held: Held = leave_cell_out(cells, fit)
        if self.held.log_errors.size < least:
            raise InputError(
                "too few cells lie between others, so the error there is not known",
                field="cells",
                value=f"{self.held.log_errors.size} of {len(cells.n)}",
                allowed=f"{least} or more between others",
            )
        self._predict: Predict = fit(cells.places, cells.log_centres)

    def at(self, input_tokens: int, batch: int, *, statistic: str = "p50", extrapolate: bool = False) -> Answer:
        """The latency of a request of `batch` prompts of `input_tokens` each.

        Raises:
            InputError: the place is outside what was measured and `extrapolate` is not set, or `FAR_OCTAVES` outside;
                or the statistic is not known or asks for more repeats than there are.
        """
        if input_tokens < 1 or batch < 1:
            raise InputError("must be 1 or more", field="input_tokens, batch", value=f"{input_tokens}, {batch}")
        place = np.log2([input_tokens, batch])
        outside = not self._hull.holds(place)
        apart = np.abs(self.cells.places - place).max(axis=1)
        if outside and (not extrapolate or apart.min() > FAR_OCTAVES):
            raise InputError(
                "is too far outside what was measured" if extrapolate else "is outside what was measured",
                field="input_tokens, batch",
                value=f"{format_tokens(input_tokens)} x {batch}",
                allowed=f"nearest measured: {self._nearest(place)}",
            )
        near = apart <= NEAR_OCTAVES
        log_value = float(self._predict(place[None, :])[0]) + self._log_of(statistic)
        half = self._half_width() * (1 + float(apart.min()) if outside else 1)
        return Answer(
            input_tokens=input_tokens,
            batch=batch,
            cache=self.cells.cache,
            metric=self.cells.metric,
            statistic=statistic,
            value_s=math.exp(log_value),
            low_s=math.exp(log_value - half),
            high_s=math.exp(log_value + half),
            coverage=COVERAGE,
            extrapolated=outside,
            near_cells=int(near.sum()),
            near_n=int(self.cells.n[near].sum()),
            cells=len(self.cells.n),
            checked=self.held.log_errors.size,
        )

    def _half_width(self) -> float:
        """Split-conformal quantile of the held-out errors: exceeded by a new one at most 1 - COVERAGE of the time."""
        errors = np.sort(np.abs(self.held.log_errors))
        return float(errors[math.ceil((errors.size + 1) * COVERAGE) - 1])

    def _log_of(self, statistic: str) -> float:
        """The statistic against the centre, by the spread of repeats in all cells, taken to be the same in each."""
        if statistic not in STATISTICS:
            raise InputError("unknown statistic", field="statistic", value=statistic, allowed=", ".join(STATISTICS))
        spread = self.cells.log_spread
        if statistic == "mean":
            return float(np.log(np.exp(spread).mean())) if spread.size else 0.0
        p = PERCENTILES[statistic]
        if p == 0.5:
            return float(np.median(spread)) if spread.size else 0.0
        needs = sample_needs(p)
        if spread.size < needs.shown:
            raise InputError(
                f"asks for {needs.shown} repeats of cells, {spread.size} were measured",
                field="statistic",
                value=statistic,
                allowed="p50, mean",
            )
        return float(np.quantile(spread, p))

    def _nearest(self, place: Array) -> str:
        cells = self.cells
        best = int(np.linalg.norm(cells.places - place, axis=1).argmin())
        seconds = format_seconds(float(np.exp(cells.log_centres[best])))
        return f"{format_tokens(round(cells.input_tokens[best]))} x {cells.batch[best]:.0f}, {seconds}"


def _least_checked() -> int:
    """The fewest held-out errors whose conformal quantile at COVERAGE is one of them."""
    return math.ceil(COVERAGE / (1 - COVERAGE) - 1e-9)
