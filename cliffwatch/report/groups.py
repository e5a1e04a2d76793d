"""A run's requests apart by what they were: tenant, model, priority, turn of a session and the like."""

from __future__ import annotations

from enum import StrEnum

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import OK, in_phase
from cliffwatch.records.schema import Phase
from cliffwatch.report.query import rows
from cliffwatch.slo.judgement import Quantile
from cliffwatch.slo.quantiles import PERCENTILES, quantiles

MAX_GROUPS = 100


class Grouping(StrEnum):
    """Columns by which requests may be told apart."""

    TENANT = "tenant"
    MODEL = "model"
    PRIORITY = "priority"
    TURN = "turn"
    ENDPOINT = "endpoint"
    BATCH = "batch"
    CACHE = "cache"
    WORKER = "worker"
    REPLICA = "replica"


class GroupSummary(BaseModel):
    """Requests of one value (null: those without one): how many, how many succeeded, and the latencies of these.

    `latencies` are percentiles by figure, as the report labels them, then by name (`p50`).
    """

    model_config = ConfigDict(frozen=True)

    value: str | None
    n: int
    ok: int
    latencies: dict[str, dict[str, Quantile]]


def group(
    connection: duckdb.DuckDBPyConnection, by: Grouping, figures: dict[str, str], phase: Phase | None
) -> tuple[GroupSummary, ...]:
    """The largest `MAX_GROUPS` groups, in the order of their values; `figures` are label to name."""
    levels = list(PERCENTILES.values())
    columns = [f"{by}::VARCHAR, any_value({by}) AS key", "count(*) AS n", f"count(*) FILTER ({OK})"]
    for name in figures.values():
        columns += [f"count({name}) FILTER ({OK})", f"quantile_cont({name}, {levels}) FILTER ({OK})"]
    found = rows(connection, ", ".join(columns), in_phase(phase), f"GROUP BY 1 ORDER BY n DESC, 1 LIMIT {MAX_GROUPS}")
    found.sort(key=lambda one: (one[1] is None, one[1] if one[1] is not None else 0))
    return tuple(
        GroupSummary(
            value=value,
            n=n,
            ok=ok,
            latencies={
                label: quantiles(values, known)
                for label, known, values in zip(figures, found_figures[::2], found_figures[1::2], strict=True)
            },
        )
        for value, _, n, ok, *found_figures in found
    )
