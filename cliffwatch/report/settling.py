"""Whether a run had settled: what MSER-5 would cut off its ends, and whether what was measured drifts.

It is said, never done: the figures of a report are of the phases that the workload file asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import OK
from cliffwatch.records.schema import Phase
from cliffwatch.stats.mser import SMALLEST_S, Cut, kendall_p, mser

# A warm-up that leaves less than this share of the measured requests in the cut is taken to cover it: it moves no P95.
UNCOVERED = 0.01
# Not steady: a trend over 20 batch medians that chance shows in one run of 100, and a tenth from first to last quarter.
TREND_BATCHES = 20
TREND_P = 0.01
TREND_CHANGE = 0.10
MIN_TREND = 5 * TREND_BATCHES

Array = np.ndarray[Any, Any]


class Settling(BaseModel):
    """One latency over time. Counts are successful requests in order of their intended time; null is too few to tell.

    Attributes:
        n: warm-up and measured requests; the cold start is not among them.
        warmup_cut, warmup_s: requests that MSER-5 would leave out, and the time into the run of the first one kept.
        measured_cut: of those, how many the configured warm-up did not cover.
        covered: the configured warm-up covers the cut, but for 1 % of the measured requests.
        settled: false where MSER-5 finds no end of the warm-up in the first half.
        cooldown_cut: measured requests that the rule would leave out at the end, as of a run read backwards.
        trend_p, change: Mann and Kendall's p-value over 20 medians of measured requests; last quarter against first.
        steady: false where both the p-value is under 0.01 and the change at least 10 %.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    figure: str
    n: int
    warmup_cut: int | None = None
    warmup_s: float | None = None
    measured_cut: int | None = None
    covered: bool | None = None
    settled: bool | None = None
    cooldown_cut: int | None = None
    trend_p: float | None = None
    change: float | None = None
    steady: bool | None = None


def settle(connection: duckdb.DuckDBPyConnection, figures: Mapping[str, str]) -> tuple[Settling, ...]:
    """Look at each figure (label to column) of the warm-up and measured requests. Memory: 8 bytes a row and figure."""
    columns = ", ".join(figures.values())
    query = (
        f"SELECT intended_ns / 1e9 AS due_s, phase = '{Phase.MEASURED}' AS measured, {columns} FROM requests"  # noqa: S608
        f" WHERE {OK} AND phase <> '{Phase.COLD}' ORDER BY intended_ns, request_id"
    )
    found = connection.execute(query).fetchnumpy()
    due, measured = np.asarray(found["due_s"]), np.asarray(found["measured"], dtype=bool)
    return tuple(_settling(label, figure, due, measured, found[figure]) for label, figure in figures.items())


def _settling(label: str, figure: str, due: Array, measured: Array, column: Array) -> Settling:
    known = ~np.ma.getmaskarray(column)
    values, due, measured = np.asarray(column[known], dtype=np.float64), due[known], measured[known]
    # Prompts of 1k and of 32k tokens differ thirtyfold: in logarithms no single one of them decides where to cut.
    series = np.log(np.maximum(values, SMALLEST_S))
    parts: dict[str, Any] = {}
    if (cut := mser(series)) is not None:
        parts |= _warmup(cut, due, measured)
    if (tail := mser(series[::-1])) is not None:
        parts["cooldown_cut"] = int(measured[len(measured) - tail.values :].sum())
    return Settling(label=label, figure=figure, n=len(values), **parts, **_trend(values[measured]))


def _warmup(cut: Cut, due: Array, measured: Array) -> dict[str, Any]:
    inside = int(measured[: cut.values].sum())
    return {
        "warmup_cut": cut.values,
        "warmup_s": float(due[cut.values]),
        "measured_cut": inside,
        "covered": cut.settled and inside <= UNCOVERED * int(measured.sum()),
        "settled": cut.settled,
    }


def _trend(values: Array) -> dict[str, Any]:
    if len(values) < MIN_TREND:
        return {}
    p_value = kendall_p(np.array([np.median(part) for part in np.array_split(values, TREND_BATCHES)]))
    quarter = len(values) // 4
    first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
    change = last / first - 1 if first > 0 else None
    drifts = p_value < TREND_P and change is not None and abs(change) >= TREND_CHANGE
    return {"trend_p": p_value, "change": change, "steady": not drifts}
