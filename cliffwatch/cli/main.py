"""The `cliffwatch` command: a table of commands, each imported only when it is called."""

from __future__ import annotations

import sys
from io import TextIOWrapper

import typer

from cliffwatch import __version__
from cliffwatch.cli.lazy import Table, lazy_group
from cliffwatch.errors import CliffwatchError, ExitCode

COMMANDS: Table = {
    "demo": (
        "cliffwatch.cli.demo:app",
        "Run the whole job on this machine: engine, load, live page, report.",
    ),
    "run": ("loadgen.command:app", "Send a workload to an inference server and judge the run."),
    "link-key": ("cliffwatch.cli.link_key:app", "Make a key for a run over several machines."),
    "capacity": ("loadgen.capacity.command:app", "Find the highest request rate at which an SLO file holds."),
    "calibrate": ("loadgen.calibration.command:app", "Measure how far off this host's own measuring is."),
    "import": ("cliffwatch.cli.imports:app", "Keep another tool's measurements as a run."),
    "report": ("cliffwatch.cli.report:app", "Judge a finished run: table, JSON or one HTML file."),
    "compare": ("cliffwatch.cli.compare:app", "Say where a new run is better or worse than another: a gate for CI."),
    "surface": ("cliffwatch.cli.surface:app", "Latency over the dimensions of the traffic: grids of a run's requests."),
    "workload": ("cliffwatch.cli.workload:app", "Preview, check and create workload files."),
    "engines": ("cliffwatch.cli.engines:app", "Know what inference engines expose, and what a live one can carry."),
    "slo": ("cliffwatch.cli.slo:app", "Check, create, compile and watch SLO files."),
    "engine": ("services.engine.command:app", "Serve the stand-in inference engine (no GPU needed)."),
    "serve": ("services.slo.command:app", "Serve the SLO API and web page over a folder of runs."),
    "dashboards": ("dashboards.command:app", "Build the Grafana boards."),
}


app = typer.Typer(cls=lazy_group(COMMANDS), no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"cliffwatch {__version__}")
        raise typer.Exit


@app.callback()
def cliffwatch(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Find the latency cliff of an LLM inference server, and watch its SLOs.

    Exit codes: 0 good, 1 SLO missed or regression, 2 wrong input, 3 run invalid, 4 target unreachable, 130 interrupted.
    """


def main() -> None:
    """Entry point: every `CliffwatchError` becomes one clear line on standard error and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 gets `?`, not a traceback
    try:
        app(prog_name="cliffwatch")
    except CliffwatchError as error:
        print(f"cliffwatch: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(ExitCode.OK)


if __name__ == "__main__":
    main()
