"""The client's figures of the requests that lie within a time, counted as an engine counts: by prompt, all phases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from cliffwatch.report.query import row
from cliffwatch.slo.beside.engine import Mean

# figure: seconds and events of one row, null where it has none; a prompt takes as long as its batch, but has a TTFT
_SUMS = {
    "ttft": ("coalesce(list_sum(prompt_ttfts_us) / 1e6, ttft_s)", "coalesce(len(prompt_ttfts_us), 1)"),
    "e2e": ("e2e_s * batch", "batch"),
    "itl": ("list_sum(chunk_gaps_us) / 1e6", "len(chunk_gaps_us)"),
    "decode": ("CASE WHEN e2e_s IS NOT NULL THEN (last_token_ns - first_token_ns) / 1e9 * batch END", "batch"),
}
_WITHIN = {
    "ttft": (
        "CASE WHEN prompt_ttfts_us IS NULL THEN (ttft_s <= {limit})::INTEGER"
        " ELSE len(list_filter(prompt_ttfts_us, lambda each: each <= {limit} * 1e6)) END"
    ),
    "e2e": "(e2e_s <= {limit})::INTEGER * batch",
}
_COUNTS = (
    "coalesce(sum(batch * greatest(coalesce(attempts, 1), 1)), 0)",
    "count(*) FILTER (batch > 1)",
    "count(*) FILTER (attempts > 1)",
)


@dataclass(frozen=True, slots=True)
class ClientSide:
    """The rows of a time.

    Attributes:
        figures: `ttft`, `e2e`, `itl`, `decode`.
        within: how many were at most a threshold, by figure and threshold in seconds.
        sent: prompts sent, each attempt counted.
        across: requests that were under way at an end of the time, and are in no figure.
        batches, retried: requests with several prompts, with several attempts.
        unended: requests sent whose end nobody saw; they too are in no figure.
    """

    figures: Mapping[str, Mean]
    within: Mapping[tuple[str, float], int]
    sent: int
    across: int
    batches: int
    retried: int
    unended: int


def read_client(
    connection: duckdb.DuckDBPyConnection,
    from_ns: int | None,
    to_ns: int | None,
    thresholds: Iterable[tuple[str, float]] = (),
) -> ClientSide:
    """Requests sent from `from_ns` that ended by `to_ns` (nanoseconds of the run; None: no limit)."""
    began = "TRUE" if from_ns is None else f"sent_ns >= {from_ns:d}"
    over = "TRUE" if to_ns is None else f"ended_ns <= {to_ns:d}"
    started = "TRUE" if to_ns is None else f"sent_ns <= {to_ns:d}"
    not_over = "TRUE" if from_ns is None else f"ended_ns >= {from_ns:d}"
    asked = [(figure, float(limit)) for figure, limit in thresholds]
    columns = [*_COUNTS, *_sums(), *(f"coalesce(sum({_WITHIN[key].format(limit=repr(at))}), 0)" for key, at in asked)]
    inside = f"sent_ns IS NOT NULL AND ended_ns IS NOT NULL AND {began} AND {over}"
    found = row(connection, ", ".join(columns), inside)
    overlapping, unended = row(
        connection,
        f"count(*) FILTER (ended_ns IS NOT NULL AND {started} AND {not_over} AND NOT ({began} AND {over})),"
        " count(*) FILTER (ended_ns IS NULL)",
        "sent_ns IS NOT NULL",
    )
    sent, batches, retried = found[:3]
    pairs, within = found[3 : 3 + 2 * len(_SUMS)], found[3 + 2 * len(_SUMS) :]
    figures = {figure: Mean(float(pairs[2 * at]), int(pairs[2 * at + 1])) for at, figure in enumerate(_SUMS)}
    counted = dict(zip(asked, map(int, within), strict=True))
    return ClientSide(figures, counted, int(sent), overlapping, batches, retried, unended)


def _sums() -> list[str]:
    """Seconds and events of each figure, a column each."""
    return [
        column
        for seconds, events in _SUMS.values()
        for column in (f"coalesce(sum({seconds}), 0)", f"coalesce(sum({events}) FILTER (({seconds}) IS NOT NULL), 0)")
    ]
