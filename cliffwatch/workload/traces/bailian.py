"""Qwen-Bailian usage traces: JSON lines as Mooncake's, but in seconds with fractions and blocks of 16 tokens."""

from cliffwatch.workload.traces.columns import RowFormat

BAILIAN = RowFormat(
    name="bailian",
    containers=("jsonl",),
    time=("timestamp",),
    input=("input_length",),
    output=("output_length",),
    blocks=("hash_ids",),
    marks=("chat_id",),
    unit="s",
    block_tokens=16,
)
