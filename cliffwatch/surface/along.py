"""A run's latencies along one axis, one curve for each value of another dimension."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from cliffwatch.errors import InputError
from cliffwatch.surface.bins import AUTO, Axis
from cliffwatch.surface.cells import Array
from cliffwatch.surface.grid import Question, Source, samples

Points = list[tuple[float, Array]]


def curves(
    source: Source, metric: str, axis: str, by: str, *, bins: str = AUTO, phase: str = "measured"
) -> Mapping[str, Points]:
    """(axis value, values there) in order of the axis, by the label of `by`.

    A bin of the axis stands at its middle; on a log scale at the geometric one.

    Raises:
        InputError: an unknown name, or an axis of words.
        RunError: the run cannot be read.
    """
    question = Question(metric, "mean", rows=axis, columns=by, phase=phase, row_bins=bins)
    found = samples(source, question)
    rows, columns = found.axes[:2]
    if any(isinstance(key, str) for key in rows.keys):
        raise InputError("has no order to jump along", field="--axis", value=axis, allowed="a dimension of numbers")
    middles = dict(zip(rows.numbers, _middles(rows), strict=True))
    return {
        label: [(middles[row], found.cells[row, column][0]) for row in rows.numbers if (row, column) in found.cells]
        for column, label in zip(columns.numbers, columns.labels, strict=True)
    }


def _middles(axis: Axis) -> list[float]:
    if not axis.edges:
        return [float(key) for key in axis.keys]
    log = axis.scale == "log"
    return [math.sqrt(low * high) if log else (low + high) / 2 for low, high in pairwise(axis.edges)]
