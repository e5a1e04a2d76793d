"""A judged run as a table, as JSON, as one HTML file."""

from __future__ import annotations

from cliffwatch.report.summary import Report, build

__all__ = ["Report", "build"]
