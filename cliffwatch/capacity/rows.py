"""The series of a probe from its run folder, live or closed, by the conditions that a judgement has."""

from __future__ import annotations

import numpy as np

from cliffwatch.capacity.evidence import Array, Series
from cliffwatch.records.conditions import OK, in_phase, outcome_in
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.slo.judge import marks, meets_all
from cliffwatch.slo.spec import SloFile
from cliffwatch.workload.plan import PHASES, PlanBlock
from cliffwatch.workload.schedule import plan_blocks
from cliffwatch.workload.spec import Workload

ENDED_BY_US = (Outcome.CANCELLED, Outcome.LOST)


def read_series(reader: RunReader, slo: SloFile, workload: Workload) -> Series:
    """The measured requests so far, those of an open loop that have no row yet included as pending.

    Requests that were never sent (`late`) are left out: they are the load generator's, and its verdict's matter.

    Raises:
        RunError: shards that cannot be read.
    """
    kept = meets_all(slo, open_loop=workload.open_loop)
    judged = ", ".join(
        f"{mark} AS mark_{number}" for number, mark in enumerate(marks(slo, open_loop=workload.open_loop))
    )
    query = (
        f"SELECT request_id, intended_ns / 1e9 AS due_s, ended_ns / 1e9 AS ended_s, outcome = '{Outcome.LATE}' AS late,"  # noqa: S608
        f" CASE WHEN {OK} THEN coalesce(ttft_user_s, e2e_user_s) END AS latency_s,"
        f" {outcome_in(ENDED_BY_US)} AND cancel_after_s IS NULL AS pending, coalesce({kept}, FALSE) AS kept,"
        f" {judged} FROM requests WHERE {in_phase(Phase.MEASURED)} ORDER BY intended_ns, request_id"
    )
    with reader.session() as connection:
        found = connection.execute(query).fetchnumpy()
    rows = {name: np.ma.filled(np.ma.asarray(column), _missing(name)) for name, column in found.items()}
    sent = ~rows["late"].astype(bool)
    pending = rows["pending"].astype(bool)
    series = Series(
        due_s=rows["due_s"][sent].astype(np.float64),
        ended_s=np.where(pending, np.inf, rows["ended_s"].astype(np.float64))[sent],
        latency_s=rows["latency_s"][sent].astype(np.float64),
        marks=np.array([rows[f"mark_{number}"][sent] for number in range(len(slo.objectives))], dtype=np.int8),
        kept=rows["kept"][sent].astype(bool),
        pending=pending[sent],
    )
    return _with_absent(series, _absent(workload, rows["request_id"])) if workload.open_loop else series


def _missing(name: str) -> float:
    return {"ended_s": np.inf, "latency_s": np.nan}.get(name, 0)


def _absent(workload: Workload, known: Array) -> Array:
    """Intended times, in seconds, of the measured requests of the schedule that have no row.

    Of a session only the first turn has a time of its own; the others wait for its answers.
    """
    times = [block.intended_ns[_measured(block) & ~np.isin(block.request_id, known)] for block in plan_blocks(workload)]
    return np.concatenate(times) / 1e9 if times else np.zeros(0)


def _measured(block: PlanBlock) -> Array:
    measured: Array = block.phase == PHASES.index(Phase.MEASURED)
    return measured if "turn" not in block.extra else measured & (block.extra["turn"] == 0)


def _with_absent(series: Series, due_s: Array) -> Series:
    """With requests that have no end yet."""
    count = len(due_s)
    if not count:
        return series
    due = np.concatenate([series.due_s, due_s])
    order = np.argsort(due, kind="stable")

    def joined(values: Array, missing: object) -> Array:
        return np.concatenate([values, np.full(count, missing, dtype=values.dtype)])[order]

    return Series(
        due_s=due[order],
        ended_s=joined(series.ended_s, np.inf),
        latency_s=joined(series.latency_s, np.nan),
        marks=np.array([joined(marks_of, 0) for marks_of in series.marks]),
        kept=joined(series.kept, False),
        pending=joined(series.pending, True),
    )
