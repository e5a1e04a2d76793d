"""What a person gets when a run is over: the judged table or JSON, the reason of an early end, the exit code."""

from __future__ import annotations

import sys

import typer

from cliffwatch.cli.report import exit_code, show
from cliffwatch.errors import ExitCode
from cliffwatch.report.json import render
from cliffwatch.report.summary import build
from loadgen.coordinator import Coordinator

INTERRUPTED = "interrupted"


def conclude(coordinator: Coordinator, *, as_json: bool = False, report: bool = True) -> ExitCode:
    """Print the closed run's report to standard output and the reason of an early end to standard error.

    Raises:
        RunError: the run's files cannot be read.
    """
    judged = build(coordinator.run_dir)
    if as_json:
        typer.echo(render(judged))
    elif report:
        show(judged)
    reason = judged.manifest.partial_reason
    if reason is not None:
        print(f"cliffwatch: {reason}; what was recorded is in {coordinator.run_dir}", file=sys.stderr)  # noqa: T201
    if coordinator.stop_reason is None:
        return exit_code(judged)
    return ExitCode.INTERRUPTED if coordinator.stop_reason.startswith(INTERRUPTED) else ExitCode.RUN_INVALID
