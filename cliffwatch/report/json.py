"""The report as JSON for machines: the fields of `Report`, unknown as null, no NaN."""

from __future__ import annotations

from cliffwatch.report.summary import Report


def render(report: Report) -> str:
    """One JSON object, indented, without a final newline."""
    return report.model_dump_json(indent=2)
