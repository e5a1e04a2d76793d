"""A run's latencies along one axis, one curve for each value of another dimension."""

from __future__ import annotations

from collections.abc import Mapping

from cliffwatch.errors import InputError
from cliffwatch.surface.bins import AUTO
from cliffwatch.surface.grid import Points, Question, Source, samples


def question_along(metric: str, axis: str, by: str, bins: str = AUTO) -> Question:
    """What `curves` asks. Raises InputError for an unknown name."""
    return Question(metric, "mean", rows=axis, columns=by, row_bins=bins)


def curves(source: Source, metric: str, axis: str, by: str, *, bins: str = AUTO) -> Mapping[str, Points]:
    """(axis value, values there) in order of the axis, by the label of `by`.

    A bin of the axis stands at its middle; on a log scale at the geometric one.

    Raises:
        InputError: an unknown name, or an axis of words.
        RunError: the run cannot be read.
    """
    found = samples(source, question_along(metric, axis, by, bins))
    rows, columns = found.axes[:2]
    if rows.middles is None:
        raise InputError("has no order to jump along", field="--axis", value=axis, allowed="a dimension of numbers")
    return {label: found.curve(column) for column, label in zip(columns.numbers, columns.labels, strict=True)}
