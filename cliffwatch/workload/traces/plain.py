"""Any CSV or JSON lines with a column of times and one of each length, under the names that such files use or given."""

from __future__ import annotations

from cliffwatch.workload.arrival_parts import TraceColumns
from cliffwatch.workload.traces.columns import RowFormat

PLAIN = RowFormat(
    name="plain",
    containers=("csv", "jsonl"),
    time=("timestamp", "time", "time_s", "time_ms", "arrival_time", "arrived_at", "timestamp_s", "timestamp_ms"),
    input=(
        "input_tokens",
        "prompt_tokens",
        "input_length",
        "input_toks",
        "context_tokens",
        "num_prefill_tokens",
        "isl",
    ),
    output=(
        "output_tokens",
        "completion_tokens",
        "output_length",
        "output_toks",
        "generated_tokens",
        "num_decode_tokens",
        "osl",
    ),
    blocks=("hash_ids", "block_ids"),
)


def with_columns(columns: TraceColumns | None) -> RowFormat:
    """The plain format with the columns that a person named in place of the usual ones."""
    if columns is None:
        return PLAIN
    return RowFormat(
        name="plain",
        containers=PLAIN.containers,
        time=PLAIN.time if columns.time is None else (columns.time,),
        input=PLAIN.input if columns.input is None else (columns.input,),
        output=PLAIN.output if columns.output is None else (columns.output,),
        blocks=PLAIN.blocks if columns.blocks is None else (columns.blocks,),
    )
