"""What a run got done, and how long the hardware was held for it: the denominators of prices and rates."""

from __future__ import annotations

import duckdb
from pydantic import BaseModel, ConfigDict

from cliffwatch.records.conditions import OK, in_phase
from cliffwatch.records.schema import Phase, TokenSource

_INPUT = "coalesce(server_input_tokens, built_input_tokens)"


class Work(BaseModel):
    """Successful work of one phase.

    Attributes:
        held_s: seconds from the first request's intended time to the last one's end; null where none has ended.
        requests: requests answered in full.
        input_tokens, output_tokens: tokens of those requests; null where one request's count is not known.
        estimated: some counts are the client's, since the server reported none.
    """

    model_config = ConfigDict(frozen=True)

    held_s: float | None
    requests: int
    input_tokens: int | None
    output_tokens: int | None
    estimated: bool = False

    def per_s(self, amount: int | None) -> float | None:
        """A rate over the held time; null where either is not known."""
        return amount / self.held_s if self.held_s and amount is not None else None


def measure_work(connection: duckdb.DuckDBPyConnection, phase: Phase | None) -> Work:
    """Sum up one phase (None: all) of the view `requests`."""
    row = connection.execute(
        "SELECT (max(ended_ns) - min(intended_ns)) / 1e9,"  # noqa: S608  constants only
        f" count(*) FILTER ({OK}),"
        f" sum({_INPUT}) FILTER ({OK}), count(*) FILTER ({OK} AND {_INPUT} IS NULL),"
        f" sum(output_tokens) FILTER ({OK}), count(*) FILTER ({OK} AND output_tokens IS NULL),"
        f" count(*) FILTER ({OK} AND (server_input_tokens IS NULL OR output_tokens_source <> '{TokenSource.SERVER}'))"
        f" FROM requests WHERE {in_phase(phase)}"
    ).fetchone()
    held_s, requests, inputs, no_input, outputs, no_output, estimated = row or (None, 0, None, 0, None, 0, 0)
    return Work(
        held_s=held_s,
        requests=requests,
        input_tokens=None if no_input else int(inputs or 0),
        output_tokens=None if no_output else int(outputs or 0),
        estimated=bool(estimated),
    )
