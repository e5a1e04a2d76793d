"""What a run shows, as the API's answers: pure functions of a reader, or of a report already made of it."""

from __future__ import annotations

import math
from typing import Any

from cliffwatch.errors import RunError
from cliffwatch.records.conditions import OK
from cliffwatch.records.figures import FIGURES
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report import plots
from cliffwatch.report.summary import Report
from cliffwatch.stats import sample_needs
from services.slo.models import (
    Attainment,
    Outcomes,
    Percentile,
    Percentiles,
    RunDetail,
    RunItem,
    RunRows,
    Timeline,
)
from services.slo.parameters import MetricParameters, TimelineParameters, label
from services.slo.store import ListedRun

NO_DATA = "no data yet"
NO_SLO = "no SLO file: start the run, or this service, with --slo FILE to have it judged"
LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def item(run: ListedRun) -> RunItem:
    """A run as the list has it."""
    return RunItem.model_validate(_item(run))


def _item(run: ListedRun) -> dict[str, Any]:
    manifest = run.manifest
    own: dict[str, Any] = {
        "id": run.folder.run_id,
        "state": "damaged" if manifest is None else manifest.state.value,
        "problem": run.problem,
        "live": run.live,
        "changed_unix_s": run.folder.changed_unix_s,
        "verdict": manifest.verdict.state.value if manifest and manifest.verdict else None,
        "issued": manifest.accounting.issued if manifest and manifest.accounting else None,
    }
    return dict.fromkeys(RunItem.model_fields) | (manifest.model_dump() if manifest else {}) | own


def rows(reader: RunReader) -> RunRows:
    """What can only be told by counting."""
    with reader.session() as connection:
        found = connection.execute(
            "SELECT phase, count(*), max(ended_ns) / 1e9 FROM requests GROUP BY phase ORDER BY phase"
        ).fetchall()
    counts = {phase: count for phase, count, _ in found}
    ends = [end for _, _, end in found if end is not None]
    return RunRows(rows=sum(counts.values()), phases=counts, elapsed_s=max(ends) if ends else None)


def detail(run: ListedRun, counted: RunRows) -> RunDetail:
    """A run with its rows counted. Raises RunError where its manifest cannot be read (any more)."""
    manifest = run.manifest
    if manifest is None:
        raise RunError(run.problem or "cannot be read", file=run.folder.run_id)
    verdict = manifest.verdict
    return RunDetail.model_validate(
        manifest.model_dump(exclude={"state", "verdict"})
        | _item(run)
        | counted.model_dump()
        | {
            "reasons": verdict.reasons if verdict else [],
            "checks": verdict.checks if verdict else [],
            "note": None if counted.rows else NO_DATA,
        }
    )


def attainment(run_id: str, report: Report) -> Attainment:
    """The judgement, or why there is none."""
    note = NO_SLO if report.judgement is None else None if report.n else NO_DATA
    return Attainment(run=run_id, note=note, judgement=report.judgement)


def outcomes(run_id: str, report: Report) -> Outcomes:
    """How the requests ended."""
    return Outcomes(
        run=run_id,
        phase=report.phase,
        n=report.n,
        outcomes=list(report.outcomes),
        errors=list(report.errors),
        note=None if report.n else NO_DATA,
    )


def percentiles(run_id: str, reader: RunReader, asked: MetricParameters) -> Percentiles:
    """The distribution of a metric over the successful requests."""
    with reader.session() as connection:
        n, mean, least, greatest, values = connection.execute(
            f"SELECT count({asked.metric}), avg({asked.metric}), min({asked.metric}), max({asked.metric}),"  # noqa: S608
            f" quantile_cont({asked.metric}, {list(LEVELS)}) FROM requests WHERE {OK} AND phase = ?",
            [asked.phase],
        ).fetchone() or (0, None, None, None, None)
    return Percentiles(
        run=run_id,
        metric=asked.metric,
        unit=FIGURES[asked.metric].unit,
        phase=asked.phase,
        n=n,
        mean=known(mean),
        least=known(least),
        greatest=known(greatest),
        percentiles=[_percentile(p, value, n) for p, value in zip(LEVELS, values or [None] * len(LEVELS), strict=True)],
        note=None if n else NO_DATA,
    )


def _percentile(p: float, value: float | None, n: int) -> Percentile:
    needs = sample_needs(p)
    return Percentile(p=p, value=known(value) if n >= needs.shown else None, few=n < needs.sure)


def timeline(run_id: str, reader: RunReader, asked: TimelineParameters) -> Timeline:
    """A metric and the failures over the run."""
    with reader.session() as connection:
        found = plots.timeline(connection, label(asked.metric), asked.metric, Phase(asked.phase), max_bins=asked.bins)
    bins = found.bins
    return Timeline(
        run=run_id,
        metric=asked.metric,
        label=found.label,
        unit=FIGURES[asked.metric].unit,
        phase=asked.phase,
        width_s=found.bin_s if bins else None,
        start_s=[one.start_s for one in bins],
        p50=[known(one.p50.value) for one in bins],
        p95=[known(one.p95.value) for one in bins],
        counts=[one.p50.n for one in bins],
        requests=[one.n for one in bins],
        failed=[one.failed for one in bins],
        not_served=[one.not_served for one in bins],
        note=None if bins else NO_DATA,
    )


def tally(reader: RunReader) -> dict[tuple[str, str], int]:
    """Rows by phase and outcome; 0 for outcomes that did not occur, so that a counter exists before its first event."""
    with reader.session() as connection:
        found = connection.execute("SELECT phase, outcome, count(*) FROM requests GROUP BY phase, outcome").fetchall()
    present = {phase for phase, _, _ in found} | {Phase.MEASURED.value}
    empty = {(phase, outcome.value): 0 for phase in sorted(present) for outcome in Outcome}
    return empty | {(phase, outcome): count for phase, outcome, count in found}


def known(value: float | None) -> float | None:
    """A finite value, or null."""
    return value if value is not None and math.isfinite(value) else None
