"""A comparison as people read it: the cells that the table, Markdown and JUnit share."""

from __future__ import annotations

from typing import NamedTuple

from cliffwatch.compare.metrics import Kind
from cliffwatch.compare.result import Change, Comparison, FigureChange, Interval, Side
from cliffwatch.report.words import UNKNOWN, number, share
from cliffwatch.units import format_seconds

CHANGE = {
    Change.REGRESSED: "regressed",
    Change.IMPROVED: "improved",
    Change.NO_CHANGE_SHOWN: "no change shown",
    Change.TOO_FEW_DATA: "too little data",
}
SIGN = {Change.REGRESSED: "✕", Change.IMPROVED: "✓", Change.NO_CHANGE_SHOWN: "=", Change.TOO_FEW_DATA: "?"}


class Cells(NamedTuple):
    """One figure in words; an interval is empty where there is none."""

    label: str
    base: str
    base_interval: str
    base_n: str
    new: str
    new_interval: str
    new_n: str
    difference: str
    difference_interval: str
    p_value: str
    result: str
    note: str


def cells(one: FigureChange) -> Cells:
    """One figure's cells."""
    shown = one.difference if one.relative.value is None else one.relative
    return Cells(
        label=one.label,
        base=_value(one.base.value, one.kind),
        base_interval=_side(one.base, one.kind),
        base_n=f"{one.base.n:,}",
        new=_value(one.new.value, one.kind),
        new_interval=_side(one.new, one.kind),
        new_n=f"{one.new.n:,}",
        difference=_change(shown.value, one, relative=shown is one.relative),
        difference_interval=_between(shown, one),
        p_value=UNKNOWN if one.adjusted_p is None else "<0.001" if one.adjusted_p < 0.001 else f"{one.adjusted_p:.3f}",
        result=f"{SIGN[one.change]} {CHANGE[one.change]}",
        note=_note(one),
    )


def _value(value: float | None, kind: Kind) -> str:
    if kind is Kind.LATENCY:
        return format_seconds(value)
    return share(value) if kind is Kind.SHARE else number(value, "/s" if value is not None else "")


def _side(side: Side, kind: Kind) -> str:
    if side.low is None or side.high is None:
        return ""
    return _joined(_value(side.low, kind), "–", _value(side.high, kind))


def _joined(low: str, word: str, high: str) -> str:
    """Both ends, a common unit once."""
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')}{word}{high}"


def _change(value: float | None, one: FigureChange, *, relative: bool) -> str:
    """`+4.1 %`, in points for a share; seconds where there is no base to set it against."""
    if value is None:
        return UNKNOWN
    if relative:
        return f"{value * 100:+.1f} %"
    if one.kind is Kind.SHARE:
        return f"{value * 100:+.2f} points"
    sign = "-" if value < 0 else "+"
    return sign + _value(abs(value), one.kind)


def _between(shown: Interval, one: FigureChange) -> str:
    if shown.low is None or shown.high is None:
        return ""
    low, high = (_change(value, one, relative=shown is one.relative) for value in (shown.low, shown.high))
    return _joined(low, " to ", high)


def _note(one: FigureChange) -> str:
    """What a result leaves open."""
    if one.change is Change.TOO_FEW_DATA:
        return f"needs {one.needed_n:,} requests in each run" if min(one.base.n, one.new.n) < one.needed_n else _OPEN
    if one.change is not Change.NO_CHANGE_SHOWN:
        return ""
    return "regression ruled out" if one.ruled_out else "regression possible"


_OPEN = "its interval has an open end"


def conclusion(comparison: Comparison) -> str:
    """The whole in one sentence."""
    if comparison.invalid:
        return f"The figures must not be trusted: {' and '.join(comparison.invalid)} INVALID"
    counts = [(change, len(comparison.having(change))) for change in Change]
    return ", ".join(f"{count} {CHANGE[change]}" for change, count in counts if count) or "no figure to compare"


def rules(comparison: Comparison) -> str:
    """By which rule it was judged."""
    return (
        f"A change is significant at alpha {comparison.alpha:g} over all figures (Holm) and at least "
        f"{comparison.threshold * 100:g} %, for shares {comparison.threshold_points * 100:g} points. "
        f"Intervals are of {(1 - comparison.alpha) * 100:g} %, of each figure alone; where no change is shown, "
        "that of the change says whether a regression that large is possible."
    )
