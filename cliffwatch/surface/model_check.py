"""Cross-validation of surface models: whole cells are held out, with all their repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cliffwatch.surface.cells import Array
from cliffwatch.surface.hull import Hull
from cliffwatch.surface.measured import MeasuredCells
from cliffwatch.surface.model_candidates import Fit


@dataclass(frozen=True, slots=True)
class Held:
    """What a model said of cells that it had not seen and that lay within those it had.

    Attributes:
        log_errors: predicted less measured, in natural logarithms.
        unanswered: such cells of which it said nothing.
    """

    log_errors: Array
    unanswered: int

    @property
    def relative(self) -> Array:
        """Absolute errors as shares of the measured value."""
        return np.abs(np.expm1(self.log_errors))


def leave_cell_out(cells: MeasuredCells, fit: Fit) -> Held:
    """Each cell in turn, predicted from all others."""
    return _held(cells, fit, np.eye(len(cells.n), dtype=bool))


def checkerboard(cells: MeasuredCells, fit: Fit) -> Held:
    """Every other cell of the grid predicted from those between, and the other way round."""
    ranks = [np.unique(side, return_inverse=True)[1].ravel() for side in (cells.input_tokens, cells.batch)]
    black = (ranks[0] + ranks[1]) % 2 == 0
    return _held(cells, fit, np.array([black, ~black]))


def _held(cells: MeasuredCells, fit: Fit, masks: Array) -> Held:
    places, logs = cells.places, cells.log_centres
    errors = []
    for mask in masks:
        hull = Hull(places[~mask])
        asked = mask & np.array([hull.holds(place) for place in places])
        if asked.any():
            errors.append(fit(places[~mask], logs[~mask])(places[asked]) - logs[asked])
    found = np.concatenate(errors) if errors else np.empty(0)
    known = np.isfinite(found)
    return Held(found[known], int((~known).sum()))
