"""What was measured around: places between measured cells, without holes."""

from __future__ import annotations

import numpy as np
from scipy.spatial import Delaunay

from cliffwatch.surface.cells import Array

# Cells further apart than this enclose a hole: a factor of eight in length or batch.
MAX_GAP_OCTAVES = 3.0
_TOLERANCE = 1e-9


class Hull:
    """The convex hull of places (n, 2) in octaves, or the line they lie on, less its holes."""

    def __init__(self, places: Array) -> None:
        self._places = places
        self._flat = np.ptp(places, axis=0) < _TOLERANCE
        straight = len(places) < 3 or np.linalg.matrix_rank(places - places[0], tol=1e-6) < 2
        self._triangles = None if straight else Delaunay(places)

    def holds(self, place: Array) -> bool:
        """Whether measured cells, none further apart than `MAX_GAP_OCTAVES`, enclose a place."""
        if np.abs(self._places - place).max(axis=1).min() < _TOLERANCE:
            return True
        around = self._line(place) if self._triangles is None else self._triangle(place, self._triangles)
        return around is not None and bool((np.ptp(around, axis=0) <= MAX_GAP_OCTAVES + _TOLERANCE).all())

    def _triangle(self, place: Array, triangles: Delaunay) -> Array | None:
        number = int(triangles.find_simplex(place, tol=1e-6))
        return None if number < 0 else np.asarray(self._places[triangles.simplices[number]])

    def _line(self, place: Array) -> Array | None:
        """The two cells beside a place, where all cells have one batch, or one length."""
        if not self._flat.any() or (np.abs(place - self._places[0])[self._flat] > _TOLERANCE).any():
            return None
        axis = int(np.argmin(self._flat))
        before = self._places[self._places[:, axis] <= place[axis]]
        after = self._places[self._places[:, axis] >= place[axis]]
        if not len(before) or not len(after):
            return None
        return np.array([before[before[:, axis].argmax()], after[after[:, axis].argmin()]])
