"""Bins of a dimension: chosen from the data by stated rules, or forced; the way from a value to its bin and back."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from cliffwatch.errors import InputError
from cliffwatch.surface.dimensions import Dimension
from cliffwatch.units import format_tokens

# Edges of lengths lie at powers of two, and from so many requests on at 2^(k/2) as well: fewer would leave most cells
# under the samples that a P95 needs. Edges are the same for every run, and the wide ones are among the narrow ones, so
# that grids of different runs, or of one run at different times, can be laid over each other.
HALF_OCTAVES_FROM = 5_000
FEW_VALUES = 16  # so many different values are shown as they are
WIDE = 16  # from a greatest value of so many times the least on, bins grow with the values
MAX_BINS = 200
WANTED_BINS = 12
_SMALLEST = 1e-9  # a rate under it is none
STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)
AUTO = "auto"
FORMS = "auto, values, log, log:BINS_A_DOUBLING (1 to 8), linear, linear:WIDTH"
Key = int | float | str


@dataclass(frozen=True, slots=True)
class Seen:
    """What the data say of a dimension: requests, least and greatest value, different values (None: many)."""

    n: int
    least: float | None
    greatest: float | None
    values: tuple[Key, ...] | None


@dataclass(frozen=True, slots=True)
class Bins:
    """How values fall into bins.

    Attributes:
        scale: `values` (one bin a value), `log` (edges at 2^(k / per)) or `linear` (edges at k x width).
        why: the rule that chose it, in words.
        step: `per` or `width`.
        whole: whether values are whole numbers.
        last: the last bin, which holds its upper edge as well; None where every bin is a value.
    """

    scale: str
    why: str
    step: float = 1.0
    whole: bool = True
    last: int | None = None

    def sql(self, expression: str) -> str:
        """The bin of a value: its number, or the value itself; null where it has none."""
        if self.scale == "values" or self.last is None:
            return expression
        if self.scale == "linear":
            bin_number = f"least(floor(({expression}) / {self.step!r}), {self.last})::INTEGER"
            return f"CASE WHEN ({expression}) IS NOT NULL THEN {bin_number} END"  # least() passes over a null
        positive = f"({expression}) >= 1" if self.whole else f"({expression}) > 0"
        return f"CASE WHEN {positive} THEN least(floor(log2({expression}) * {self.step!r}), {self.last})::INTEGER END"

    def edge(self, number: int) -> float:
        """The lowest value of a bin; of whole numbers the lowest whole one."""
        edge = number * self.step if self.scale == "linear" else 2.0 ** (number / self.step)
        return math.ceil(round(edge, 9)) if self.whole else round(edge, 9)

    def key(self, place: Key) -> Key:
        """What a bin, as `sql` gives it, is called: its lower edge, or the value."""
        return place if isinstance(place, str) or self.last is None else self.edge(int(place))

    def number(self, value: float) -> int:
        """The bin that a value falls into."""
        place = value / self.step if self.scale == "linear" else math.log2(value) * self.step
        return math.floor(place) if self.last is None else min(math.floor(place), self.last)


EACH = Bins("values", "one a value")


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a grid.

    Attributes:
        name, unit: of the dimension.
        scale, why: as in `Bins`.
        numbers: the bins by number, or the values, in order.
        keys: what each bin is called in questions: its lower edge, or the value.
        end: the upper edge of the last bin, which it holds as well; None where every bin is a value.
    """

    name: str
    unit: str
    scale: str
    why: str
    numbers: tuple[Key, ...]
    keys: tuple[Key, ...]
    end: float | None = None

    @property
    def edges(self) -> tuple[float, ...]:
        """One more than there are bins; empty where every bin is a value."""
        return () if self.end is None or not self.keys else (*(float_of(key) for key in self.keys), self.end)

    @property
    def spans(self) -> tuple[tuple[float, float] | None, ...]:
        """For each bin of numbers [low, high): a whole value v spans [v, v + 1); None for words."""
        if self.edges:
            return tuple(pairwise(self.edges))
        return tuple(None if isinstance(key, str) else (key, key + 1) for key in self.keys)

    @property
    def middles(self) -> tuple[float, ...] | None:
        """Where each bin stands on a plot's axis: the value, or the middle by its scale; None for words."""
        if not self.edges:
            return None if any(isinstance(key, str) for key in self.keys) else tuple(map(float, self.keys))
        if self.scale == "log":
            return tuple(math.sqrt(low * high) for low, high in pairwise(self.edges))
        return tuple((low + high) / 2 for low, high in pairwise(self.edges))

    @property
    def labels(self) -> tuple[str, ...]:
        """Such as `1k–1.4k` for each bin of lengths, from its lower edge up to the next one."""
        if not self.edges:
            return tuple(_written(key, self.unit) for key in self.keys)
        return tuple(f"{_written(low, self.unit)}–{_written(high, self.unit)}" for low, high in pairwise(self.edges))


def float_of(key: Key) -> float:
    """An edge as a number: whole ones stay whole."""
    return key if isinstance(key, int) else float(key)


def choose(dimension: Dimension, seen: Seen, wanted: str = AUTO, field: str = "bins") -> Bins:
    """Bins for what was seen; `wanted` as in `FORMS`. Raises InputError."""
    kind, _, text = wanted.partition(":")
    if dimension.kind == "word":
        if wanted not in {AUTO, "values"}:
            raise InputError("are words, which have no bins", field=field, value=wanted, allowed="auto, values")
        return EACH
    if wanted == AUTO:
        return _chosen(dimension, seen)
    if kind == "values" and not text:
        return Bins("values", "one a value, as asked")
    if kind not in {"log", "linear"} or (kind == "log" and dimension.kind == "clock"):
        raise InputError("are no bins", field=field, value=wanted, allowed=FORMS)
    step = _step(kind, text, field, wanted) or (1.0 if kind == "log" else _width(dimension, seen))
    return _bounded(_closed(kind, "as asked", step, dimension, seen), seen, field)


def _step(kind: str, text: str, field: str, wanted: str) -> float | None:
    if not text:
        return None
    try:
        step = float(text)
    except ValueError:
        step = math.nan
    allowed = 1 <= step <= 8 and step == int(step) if kind == "log" else 0 < step < math.inf
    if not allowed:
        raise InputError("are no bins", field=field, value=wanted, allowed=FORMS)
    return step


def _chosen(dimension: Dimension, seen: Seen) -> Bins:
    values = seen.values
    if dimension.kind == "clock":
        width = _width(dimension, seen)
        return _closed("linear", f"steps of {width:g} s: about {WANTED_BINS} over the run", width, dimension, seen)
    if dimension.kind == "count" and values is not None:
        return Bins("values", f"one a value: there are at most {FEW_VALUES}")
    if dimension.kind == "length":
        if values is not None and len(values) > 2 and seen.n >= 2 * len(values):
            return Bins("values", f"one a length: there are at most {FEW_VALUES}, and they repeat")
        per, what = (2, "half octaves") if seen.n >= HALF_OCTAVES_FROM else (1, "octaves")
        why = f"{what}: the same edges in every run, halves from {HALF_OCTAVES_FROM:,} requests on"
        return _closed("log", why, per, dimension, seen)
    if seen.least and seen.greatest and seen.least > 0 and seen.greatest >= WIDE * seen.least:
        return _closed("log", f"doubling: the greatest is at least {WIDE} times the least", 1, dimension, seen)
    width = _width(dimension, seen)
    return _closed(
        "linear", f"steps of {width:g}: the greatest is under {WIDE} times the least", width, dimension, seen
    )


def _closed(scale: str, why: str, step: float, dimension: Dimension, seen: Seen) -> Bins:
    """Bins whose last one holds its upper edge: 32k belongs to "up to 32k", and opens no bin of its own.

    Not up to 2 on a log scale, where a bin can hold no other whole number.
    """
    whole = dimension.kind in {"length", "count"}
    if seen.greatest is None or (scale == "log" and seen.greatest <= 0):
        return Bins(scale, why, step, whole, 0)
    place = seen.greatest / step if scale == "linear" else math.log2(seen.greatest) * step
    last = math.ceil(place) - 1
    if scale == "linear":
        last = max(last, 0)
    elif whole:
        last = max(last, min(math.floor(place), int(step)))
    return Bins(scale, why, step, whole, last)


def _width(dimension: Dimension, seen: Seen) -> float:
    """The least of 1, 2, 5 times a power of ten (for times: of usual steps) that makes about `WANTED_BINS`."""
    span = (seen.greatest or 0.0) - (seen.least or 0.0)
    if dimension.kind == "clock":
        return usual_step_s(span)
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / WANTED_BINS))
    width: float = next(times * power for times in (1, 2, 5, 10) if times * power * WANTED_BINS >= span * (1 - 1e-9))
    return max(1.0, width) if dimension.kind != "number" else width


def usual_step_s(span_s: float) -> float:
    """The least usual step of time that makes at most about `WANTED_BINS` of a span."""
    wanted = span_s / WANTED_BINS
    return next((step for step in STEPS_S if step >= wanted), math.ceil(wanted / 86_400) * 86_400.0)


def _bounded(bins: Bins, seen: Seen, field: str) -> Bins:
    """Raises InputError for bins that would be too many."""
    least = max(seen.least or 0.0, 0.0 if bins.scale == "linear" else 1.0 if bins.whole else _SMALLEST)
    if bins.last is not None and bins.last - bins.number(least) >= MAX_BINS:
        raise InputError(f"make more than {MAX_BINS} bins", field=field, value=f"{bins.scale}:{bins.step:g}")
    return bins


def lay(name: str, dimension: Dimension, bins: Bins, found: Iterable[Key], field: str) -> Axis:
    """The axis over the bins that hold something, those between them included. Raises InputError for too many."""
    present = sorted(set(found))
    if bins.scale == "values":
        if len(present) > MAX_BINS:
            raise InputError(
                f"has {len(present):,} values, more than {MAX_BINS}", field=field, value=name, allowed="bins of it"
            )
        return Axis(name, dimension.unit, bins.scale, bins.why, tuple(present), tuple(present))
    if not present:
        return Axis(name, dimension.unit, bins.scale, bins.why, (), (), 0.0)
    lowest: dict[float, int] = {}
    for number in range(int(present[0]), int(present[-1]) + 2):
        lowest[bins.edge(number)] = number  # of bins that begin alike, the last one is meant
    (*edges, end) = sorted(lowest)
    return Axis(name, dimension.unit, bins.scale, bins.why, tuple(lowest[edge] for edge in edges), tuple(edges), end)


def _written(value: Key, unit: str) -> str:
    if isinstance(value, str):
        return value
    if unit == "tokens":
        return f"{value / 1024:.3g}k" if value >= 1024 else format_tokens(int(value))
    return f"{value:g}" if not isinstance(value, int) else str(value)
