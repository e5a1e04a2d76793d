"""BurstGPT: CSV, seconds since a midnight; later releases have more columns between. Failed requests have no answer."""

from cliffwatch.workload.traces.columns import RowFormat

BURSTGPT = RowFormat(
    name="burstgpt",
    containers=("csv",),
    time=("Timestamp",),
    input=("Request tokens",),
    output=("Response tokens",),
    unit="s",
    failed=True,
)
