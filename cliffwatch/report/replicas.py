"""The judged requests by the replica that answered: how evenly they went, and how slow each was."""

from __future__ import annotations

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import OK, in_phase
from cliffwatch.records.manifest import Manifest
from cliffwatch.records.replicas import count_answers
from cliffwatch.records.schema import Phase
from cliffwatch.report.intervals import SureQuantile, percentile_intervals
from cliffwatch.report.query import literal, ok_in, rows
from cliffwatch.slo.quantiles import quantile

MAX_SHOWN = 100
_FIGURE, _LEVEL = "ttft_s", 0.95


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ReplicaSummary(_Part):
    """One replica: its answers, those of them that succeeded, and the P95 of their TTFT from sent, in seconds.

    `share` is of all answers that named a replica; null where there were none.
    """

    name: str
    n: int
    ok: int
    share: float | None
    ttft_p95: SureQuantile


class ReplicasSummary(_Part):
    """How requests were spread.

    Attributes:
        header: the response header that told.
        expected: how many replicas there should be; null where nobody said.
        seen: how many answered.
        n: answers that named a replica, of `answers` that came at all.
        skew: answers of the busiest over what each would have if all expected (or else seen) had as many; null without
            answers, or where there is one replica only.
        replicas: the `MAX_SHOWN` busiest, and those that were expected by name and answered none.
    """

    header: str
    expected: int | None
    seen: int
    n: int
    answers: int
    skew: float | None
    replicas: tuple[ReplicaSummary, ...]


def summarize_replicas(
    connection: duckdb.DuckDBPyConnection, manifest: Manifest, phase: Phase | None
) -> ReplicasSummary | None:
    """None for a run that did not ask which replica answered."""
    asked = manifest.replicas
    if asked is None:
        return None
    seen = count_answers(connection, phase)
    n, fleet = sum(seen.values()), max(asked.expected or 0, len(seen))
    columns = f"replica, count(*) FILTER ({OK}), count({_FIGURE}) FILTER ({OK}), "
    columns += f"quantile_cont({_FIGURE}, {_LEVEL}) FILTER ({OK})"
    found = rows(connection, columns, f"replica IS NOT NULL AND {in_phase(phase)}", "GROUP BY 1")
    figures = {name: (ok, known, value) for name, ok, known, value in found}
    shown = [*list(seen)[:MAX_SHOWN], *asked.missing(seen)]
    ((answers,),) = rows(connection, "count(*)", f"status IS NOT NULL AND {in_phase(phase)}")
    return ReplicasSummary(
        header=asked.header,
        expected=asked.expected,
        seen=len(seen),
        n=n,
        answers=answers,
        skew=max(seen.values()) * fleet / n if n and fleet > 1 else None,
        replicas=tuple(
            ReplicaSummary(
                name=name,
                n=seen.get(name, 0),
                ok=figures[name][0] if name in figures else 0,
                share=seen.get(name, 0) / n if n else None,
                ttft_p95=_p95(connection, name, figures, phase),
            )
            for name in shown
        ),
    )


def _p95(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    figures: dict[str, tuple[int, int, float | None]],
    phase: Phase | None,
) -> SureQuantile:
    _, n, value = figures.get(name, (0, 0, None))
    found = quantile(value, n, _LEVEL)
    if found.value is None:
        return SureQuantile(**dict(found))
    key = (_FIGURE, _LEVEL)
    condition = f"{ok_in(phase)} AND replica = {literal(name)}"
    low, high = percentile_intervals(connection, {key: (found.value, n)}, condition).get(key, (None, None))
    return SureQuantile(**dict(found), low=low, high=high)
