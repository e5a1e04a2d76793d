"""Mooncake: JSON lines, whole milliseconds, blocks of 512 prompt tokens by id: equal leading ids, equal prefixes."""

from cliffwatch.workload.traces.columns import RowFormat

MOONCAKE = RowFormat(
    name="mooncake",
    containers=("jsonl",),
    time=("timestamp",),
    input=("input_length",),
    output=("output_length",),
    blocks=("hash_ids",),
    unit="ms",
    block_tokens=512,
)
