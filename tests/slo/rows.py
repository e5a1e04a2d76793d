"""Run folders of a few hand-made rows, for tests that judge them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cliffwatch.records.files import final_path
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import RunState, WorkerInfo
from cliffwatch.records.parquet import table_of, write_shard
from cliffwatch.records.reader import RunReader
from cliffwatch.records.schema import Outcome, RequestRow
from tests.records.synthetic import make_manifest, make_row

SECOND = 1_000_000_000


def served(
    number: int, *, ttft: float = 0.1, itl: float | None = 0.02, tokens: int = 11, lag: float = 0.0, **changes: Any
) -> RequestRow:
    """An ok request due at `number` seconds and sent `lag` later; its tokens follow evenly."""
    intended = number * SECOND
    sent = intended + round(lag * SECOND)
    first = sent + round(ttft * SECOND)
    last = first + round((itl or 0) * max(0, tokens - 1) * SECOND)
    values: dict[str, Any] = {
        "intended_ns": intended,
        "sent_ns": sent,
        "first_token_ns": first,
        "first_answer_ns": first,
        "last_token_ns": last,
        "ended_ns": last,
        "itl_s": itl,
        "output_tokens": tokens,
        "output_tokens_source": "server",
    }
    return make_row(number, **(values | changes))


def refused(number: int, outcome: Outcome, *, waited: float = 0.0, sent: bool = True, **changes: Any) -> RequestRow:
    """A request due at `number` seconds that ended `waited` later without a token."""
    values: dict[str, Any] = {
        "intended_ns": number * SECOND,
        "sent_ns": number * SECOND if sent else None,
        "ended_ns": number * SECOND + round(waited * SECOND),
        "outcome": outcome,
        "error": str(outcome),
        "status": None,
    }
    unknown = dict.fromkeys(
        ("first_token_ns", "first_answer_ns", "last_token_ns", "itl_s", "output_tokens", "server_input_tokens")
    )
    return make_row(number, **(unknown | {"chunks": 0, "chunk_gaps_us": None} | values | changes))


def run_of(
    folder: Path,
    rows: Sequence[RequestRow],
    *,
    state: RunState = RunState.COMPLETE,
    slo: str | None = None,
    **manifest: Any,
) -> RunReader:
    """A closed run folder of these rows."""
    create_run(folder, make_manifest(**manifest), "name: hand-made\n", slo)
    write_shard(final_path(folder, 0), iter([table_of(rows)]), {})
    worker = WorkerInfo(shard=0, host="localhost", pid=1, state="finished", rows=len(rows))
    reason = "stopped by SIGTERM" if state is RunState.PARTIAL else None
    close_run(folder, state=state, partial_reason=reason, workers=[worker], load_s=float(len(rows)))
    return RunReader(folder)
