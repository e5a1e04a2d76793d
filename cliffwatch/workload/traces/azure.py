"""Azure LLM inference traces of 2023 and 2024: CSV, date-times with 6 or 7 digits of fraction, a zone or none."""

from cliffwatch.workload.traces.columns import RowFormat

AZURE = RowFormat(
    name="azure",
    containers=("csv",),
    time=("TIMESTAMP",),
    input=("ContextTokens",),
    output=("GeneratedTokens",),
)
