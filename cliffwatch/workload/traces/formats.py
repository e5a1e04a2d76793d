"""The formats that traces come in, and which of them a file is."""

from __future__ import annotations

from pathlib import Path

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.traces.azure import AZURE
from cliffwatch.workload.traces.bailian import BAILIAN
from cliffwatch.workload.traces.burstgpt import BURSTGPT
from cliffwatch.workload.traces.columns import Head, RowFormat
from cliffwatch.workload.traces.lines import csv_records, json_records, text_lines
from cliffwatch.workload.traces.mooncake import MOONCAKE
from cliffwatch.workload.traces.plain import PLAIN, with_columns
from cliffwatch.workload.traces.rows import Repairs

ROW_FORMATS = (AZURE, BURSTGPT, BAILIAN, MOONCAKE, PLAIN)  # in order of recognition: what has more marks comes first


def read_head(path: Path) -> Head:
    """The columns of a file. Raises InputError for one that is empty or neither CSV nor JSON lines."""
    first = next((text for _, text in text_lines(path, Repairs()) if text.strip()), None)
    if first is None:
        raise InputError("is empty", file=path, allowed="a trace with one request a line")
    if first.lstrip().startswith("{"):
        _, record = next(json_records(path, Repairs()))
        return Head("jsonl", tuple(record))
    _, header = next(csv_records(path, Repairs()))
    if len(set(header)) != len(header):
        raise InputError("names a column twice", file=path, field="line 1", value=", ".join(header))
    return Head("csv", tuple(header))


def choose_format(spec: TraceArrivals, path: Path, head: Head) -> RowFormat:
    """The format that was named, or the one whose columns the file has. Raises InputError where there is none."""
    if spec.format == "plain" or spec.columns is not None:
        return with_columns(spec.columns)
    if spec.format != "auto":
        return next(known for known in ROW_FORMATS if known.name == spec.format)
    for known in ROW_FORMATS:
        if known.recognises(head):
            return known
    expected = (f"{known.name} ({known.time[0]}, {known.input[0]}, {known.output[0]})" for known in ROW_FORMATS)
    raise InputError(
        "has the columns of no known trace",
        file=path,
        field="line 1",
        value=", ".join(head.columns),
        allowed=f"{', '.join(expected)}; or format: plain with columns: {{time:, input:, output:}}",
    )
