"""What clients did of their own accord: requests that they tried again, and answers that they did not wait for."""

from __future__ import annotations

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import LEFT, OK, in_phase
from cliffwatch.records.manifest import Manifest
from cliffwatch.records.schema import Phase
from cliffwatch.report.query import row

TRIED_AGAIN = "attempts > 1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Retries(_Part):
    """Attempts of the judged requests, each request counted once.

    Attributes:
        n: requests that were sent.
        retried: those of them with more than one attempt.
        retried_ok: those of these that were answered in full in the end.
        attempts: attempts of all n together.
    """

    n: int
    retried: int
    retried_ok: int
    attempts: int


class Cancellations(_Part):
    """Judged requests whose users were to leave.

    Attributes:
        n: requests that were sent.
        planned: those of them whose user was to leave.
        left: those of these that ended so, as `cancelled`.
        ended_ok: those that were answered in full before.
        ended_otherwise: those that had failed before, or were stopped with the run.
    """

    n: int
    planned: int
    left: int
    ended_ok: int
    ended_otherwise: int


def count_retries(connection: duckdb.DuckDBPyConnection, manifest: Manifest, phase: Phase | None) -> Retries | None:
    """None for a run whose workload asked for no retries."""
    if manifest.workload.get("retries") is None:
        return None
    ok = f"count(*) FILTER ({TRIED_AGAIN} AND {OK})"
    columns = f"count(*), count(*) FILTER ({TRIED_AGAIN}), {ok}, coalesce(sum(attempts), 0)"
    n, retried, retried_ok, attempts = row(connection, columns, f"attempts > 0 AND {in_phase(phase)}")
    return Retries(n=n, retried=retried, retried_ok=retried_ok, attempts=int(attempts))


def count_cancellations(
    connection: duckdb.DuckDBPyConnection, manifest: Manifest, phase: Phase | None
) -> Cancellations | None:
    """None for a run whose workload had no user leave."""
    if manifest.workload.get("cancellations") is None:
        return None
    due = "cancel_after_s IS NOT NULL"
    columns = f"count(*), count(*) FILTER ({due}), count(*) FILTER ({LEFT}), count(*) FILTER ({due} AND {OK})"
    n, planned, left, ended_ok = row(connection, columns, f"attempts > 0 AND {in_phase(phase)}")
    return Cancellations(n=n, planned=planned, left=left, ended_ok=ended_ok, ended_otherwise=planned - left - ended_ok)
