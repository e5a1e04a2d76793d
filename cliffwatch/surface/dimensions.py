"""What a grid can be laid over: the dimensions of a request, each defined once, as SQL over the view `requests`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from cliffwatch.errors import InputError

RATE_WINDOWS_S = (10, 5, 2, 1)
Times = Mapping[str, Any]  # nanoseconds of each request, masked where unknown


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a request.

    Attributes:
        sql: expression over a row; null where the row does not tell.
        kind: `length` (whole, spread over powers of two), `count` (whole, often with few values), `number`, `clock`
            (seconds into the run) or `word`.
        unit: of its values; empty for words.
        help: what it is, in a sentence.
    """

    sql: str
    kind: str
    unit: str
    help: str


DIMENSIONS: dict[str, Dimension] = {
    "input_tokens": Dimension("input_tokens", "length", "tokens", "Input tokens a prompt, as asked"),
    "max_output_tokens": Dimension("max_output_tokens", "length", "tokens", "Output tokens a prompt, as asked"),
    "output_tokens": Dimension("output_tokens", "length", "tokens", "Output tokens of all prompts, as received"),
    "server_input_tokens": Dimension("server_input_tokens", "length", "tokens", "Input tokens by the server's count"),
    "batch": Dimension("batch", "count", "prompts", "Prompts in the request"),
    "concurrency": Dimension(
        "concurrency", "count", "requests", "Requests in flight as this one was sent, itself included"
    ),
    "rate": Dimension("rate", "number", "requests/s", "Arrivals in a window of seconds that ends as this one was due"),
    "time": Dimension("intended_ns / 1e9", "clock", "s", "When it was due, from the run's zero"),
    "cache": Dimension("cache", "word", "", "Whether the workload let its prompt share a prefix"),
    "replica": Dimension("replica", "word", "", "The replica that answered, where a header said so"),
    "model": Dimension("model", "word", "", "The model asked for"),
    "tenant": Dimension("tenant", "word", "", "The tenant, where the workload has some"),
    "endpoint": Dimension("endpoint", "word", "", "The endpoint asked"),
    "worker": Dimension("worker", "word", "", "The worker that sent it"),
    "phase": Dimension("phase", "word", "", "The part of the run"),
}


def dimension(name: str, field: str) -> Dimension:
    """The dimension of that name. Raises InputError, which names `field`."""
    if name not in DIMENSIONS:
        raise InputError(f"unknown {field}", field=field, value=name, allowed=", ".join(DIMENSIONS))
    return DIMENSIONS[name]


def rate_window_s(span_s: float) -> int:
    """The window that a rate is counted in: the longest of a few that is at most a tenth of the run."""
    return next((window_s for window_s in RATE_WINDOWS_S if window_s * 10 <= span_s), RATE_WINDOWS_S[-1])


def add_derived(connection: duckdb.DuckDBPyConnection, names: Iterable[str], window_s: int) -> str:
    """The table expression that has a column for each of these dimensions, on this connection and in its transaction.

    Derived columns are of all requests, whatever phase is asked for: the server had them all.
    """
    derived = sorted(DERIVED.keys() & set(names))
    if not derived:
        return "requests"
    # Laid beside the rows in their own order, which DuckDB keeps: a window function over them takes ten times as long.
    columns = connection.execute("SELECT intended_ns, sent_ns, ended_ns FROM requests").fetchnumpy()
    times = {name: np.ma.asarray(values, dtype=np.int64) for name, values in columns.items()}
    if _lacks_clock(times["sent_ns"]):
        times = {name: np.ma.array(values, mask=True) for name, values in times.items()}
    connection.register("_derived", pa.table({name: DERIVED[name](times, window_s) for name in derived}))
    return "(FROM requests POSITIONAL JOIN _derived)"


def _lacks_clock(sent_ns: np.ma.MaskedArray[Any, Any]) -> bool:
    """Whether these are measurements that do not tell when: they are kept a nanosecond apart, as their lines were."""
    return sent_ns.size > 1 and np.array_equal(np.sort(sent_ns.filled(0)), np.arange(1, sent_ns.size + 1))


def _concurrency(times: Times, _window_s: int) -> pa.Array:
    """A request that was never sent, or whose end nobody saw, counts for none and has none; starts of one nanosecond
    see each other, and an end is before a start of the same."""
    sent, ended = times["sent_ns"], times["ended_ns"]
    unseen = np.ma.getmaskarray(sent) | np.ma.getmaskarray(ended)
    starts, ends = np.sort(sent.data[~unseen]), np.sort(ended.data[~unseen])
    flying = np.searchsorted(starts, sent.data, "right") - np.searchsorted(ends, sent.data, "right")
    return pa.array(flying, pa.int64(), mask=unseen)


def _rate(times: Times, window_s: int) -> pa.Array:
    """Until the first window is full the rate is not known."""
    due = times["intended_ns"].filled(0)
    starts, window_ns = np.sort(due), window_s * 1_000_000_000
    arrived = np.searchsorted(starts, due, "right") - np.searchsorted(starts, due - window_ns, "right")
    early = due - starts[:1] < window_ns if due.size else np.empty(0, dtype=bool)
    return pa.array(arrived / window_s, pa.float64(), mask=early | np.ma.getmaskarray(times["intended_ns"]))


DERIVED: dict[str, Callable[[Times, int], pa.Array]] = {"concurrency": _concurrency, "rate": _rate}
