"""The measured cells that a surface is fitted to: one a length, batch and state of the cache, of a metric."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cliffwatch.errors import InputError
from cliffwatch.records.conditions import OK
from cliffwatch.records.figures import FIGURES
from cliffwatch.records.schema import Phase
from cliffwatch.surface.cells import Array
from cliffwatch.surface.grid import Source, session

# More lengths than a sweep has: traffic. Requests of about one length are then one cell.
SWEEP_LENGTHS = 64
BINS_AN_OCTAVE = 4
UNCACHED = "none"
UNKNOWN = "unknown"  # of measurements whose file does not tell


@dataclass(frozen=True, slots=True)
class MeasuredCells:
    """The cells of one metric and one state of the cache, in order of batch and length.

    Attributes:
        metric: a name in `FIGURES` whose unit is the second.
        cache: the state.
        input_tokens: a prompt, of each cell: the geometric mean of its requests.
        batch: prompts a request, of each cell.
        output_tokens: received a prompt, of each cell: the mean of its requests; NaN where none tells.
        values_s: the requests' figures, of each cell.
    """

    metric: str
    cache: str
    input_tokens: Array
    batch: Array
    output_tokens: Array
    values_s: tuple[Array, ...]

    @property
    def n(self) -> Array:
        """Requests of each cell."""
        return np.array([values.size for values in self.values_s])

    @property
    def places(self) -> Array:
        """Where the cells lie, in octaves: (cells, 2), log2 of length and of batch."""
        return np.asarray(np.log2(np.column_stack([self.input_tokens, self.batch])))

    @property
    def log_centres(self) -> Array:
        """Of each cell the mean logarithm of its seconds: the logarithm of the geometric mean."""
        return np.array([np.log(values).mean() for values in self.values_s])

    @property
    def log_spread(self) -> Array:
        """How far each request lies from its cell's centre, in logarithms, of cells with two requests or more;
        scaled by sqrt(n / (n - 1)), as the centre is the requests' own."""
        repeated = [values for values in self.values_s if values.size > 1]
        parts = [(np.log(v) - np.log(v).mean()) * np.sqrt(v.size / (v.size - 1)) for v in repeated]
        return np.concatenate(parts) if parts else np.empty(0)

    def without(self, left_out: Array) -> MeasuredCells:
        """The cells but those of a boolean mask."""
        kept = np.flatnonzero(~left_out)
        return replace(
            self,
            input_tokens=self.input_tokens[kept],
            batch=self.batch[kept],
            output_tokens=self.output_tokens[kept],
            values_s=tuple(self.values_s[i] for i in kept),
        )


def read_cells(source: Source, metric: str, *, cached: bool | None = None) -> MeasuredCells:
    """The cells of a run's measured requests that ended well.

    Args:
        source: a run, or foreign measurements.
        metric: a latency in `FIGURES`.
        cached: which state of the cache; None where there is one only.

    Raises:
        InputError: no such latency, both states are there and none is asked for, or nothing was measured of it.
        RunError: the run cannot be read.
    """
    latencies = [name for name, figure in FIGURES.items() if figure.unit == "s"]
    if metric not in latencies:
        raise InputError("is no latency", field="metric", value=metric, allowed=", ".join(latencies))
    sql = FIGURES[metric].sql
    condition = f"{OK} AND phase = ? AND ({sql}) > 0 AND input_tokens > 0 AND batch > 0"
    origin = f"FROM requests WHERE {condition}"
    columns = f"input_tokens, batch, (output_tokens / batch)::DOUBLE AS outputs, ({sql}) AS seconds"
    with session(source) as connection:
        asked = [Phase.MEASURED.value]
        states = connection.execute(f"SELECT DISTINCT cache {origin} ORDER BY cache", asked).fetchall()
        state = _state([str(name) for (name,) in states], cached, metric)
        found = connection.execute(f"SELECT {columns} {origin} AND cache = ?", [*asked, state]).fetchnumpy()
    names = ("input_tokens", "batch", "outputs", "seconds")
    return _cells(metric, state, *(np.ma.asarray(found[name], float).filled(np.nan) for name in names))


def _state(states: list[str], cached: bool | None, metric: str) -> str:
    wanted = [state for state in states if cached is None or (state != UNCACHED) == cached]
    if not states:
        raise InputError("was not measured", field="metric", value=metric)
    if not wanted:
        value = "cached" if cached else "uncached"
        raise InputError("was not measured", field="cache", value=value, allowed=f"what there is: {', '.join(states)}")
    if len(wanted) > 1:
        raise InputError("several states were measured", field="cache", value=", ".join(wanted), allowed="one of them")
    return wanted[0]


def _cells(metric: str, state: str, lengths: Array, batches: Array, outputs: Array, seconds: Array) -> MeasuredCells:
    keys = lengths
    if np.unique(lengths).size > SWEEP_LENGTHS:
        keys = np.round(np.log2(lengths) * BINS_AN_OCTAVE)
    ranks = [np.unique(side, return_inverse=True)[1] for side in (batches, keys)]
    place = ranks[0] * (ranks[1].max(initial=0) + 1) + ranks[1]
    _, counts = np.unique(place, return_counts=True)
    groups = np.split(np.argsort(place, kind="stable"), np.cumsum(counts)[:-1])
    return MeasuredCells(
        metric,
        state,
        np.array([np.exp(np.log(lengths[group]).mean()) for group in groups]),
        np.array([batches[group][0] for group in groups]),
        np.array([_mean(outputs[group]) for group in groups]),
        tuple(seconds[group] for group in groups),
    )


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan
