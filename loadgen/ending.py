"""What a person gets when a run is over: the judged table or JSON, the reason of an early end, the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from cliffwatch.cli.report import exit_code, show
from cliffwatch.errors import ExitCode
from cliffwatch.report.json import render
from cliffwatch.report.summary import build
from loadgen.coordinator import Coordinator

INTERRUPTED = "interrupted"


def conclude(coordinator: Coordinator, *, as_json: bool = False, report: bool = True) -> ExitCode:
    """Print the closed run's report; the exit code of how it ended. Raises RunError where it cannot be read."""
    code = print_report(coordinator.run_dir, as_json=as_json, report=report)
    if coordinator.stop_reason is None:
        return code
    return ExitCode.INTERRUPTED if coordinator.stop_reason.startswith(INTERRUPTED) else ExitCode.RUN_INVALID


def print_report(run_dir: Path, *, as_json: bool, report: bool) -> ExitCode:
    """A closed run to standard output, the reason of an early end to standard error; the judgement's exit code."""
    judged = build(run_dir)
    if as_json:
        typer.echo(render(judged))
    elif report:
        show(judged)
    if judged.manifest.partial_reason is not None:
        print(f"cliffwatch: {judged.manifest.partial_reason}; recorded in {run_dir}", file=sys.stderr)  # noqa: T201
    return exit_code(judged)
