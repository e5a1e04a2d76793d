"""`cliffwatch demo`: the whole job on one machine, with every real part and nothing to set up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import typer

from cliffwatch.cli.processes import Children, die_with_parent, end, free_port
from cliffwatch.errors import ExitCode, InputError
from cliffwatch.units import DURATION_FORMS, parse_seconds

ENGINE_PORT = 8000
PAGE_PORT = 8080

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    duration: str = typer.Option("60s", help=f"How long to send load: {DURATION_FORMS}."),
    workload: str = typer.Option("demo", help="A workload file, or the name of a preset."),
    slo: str = typer.Option("demo", help="An SLO file, or the name of a preset."),
    workers: int = typer.Option(2, min=1, max=64, help="Locust workers."),
    speed: float = typer.Option(10.0, min=0.1, max=1000.0, help="How many times faster than real the engine runs."),
    runs: Path = typer.Option(Path("runs"), help="Folder that the run goes into."),
    serve_after: bool = typer.Option(False, "--serve-after", help="Keep the page up at the end, until Ctrl-C."),
) -> None:
    """Start the stand-in engine and the SLO page, send long-tail traffic with Locust, print the judged table.

    Nothing but this machine is contacted. Every process is ended when the command ends. Exit code 0 when the job was
    done, whether or not the SLOs were met; otherwise the code of what failed.
    """
    _check_duration(duration)
    signal.signal(signal.SIGTERM, _interrupt)
    run_dir = runs / time.strftime("demo-%Y%m%d-%H%M%S")
    logs = runs / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    try:
        with Children(logs) as children:
            engine = _start(children, "engine", ENGINE_PORT, "/health", "engine", "--speed", str(speed))
            page = _start(children, "page", PAGE_PORT, "/healthz", "serve", "--runs", str(runs))
            typer.echo(f"engine  {engine} (stand-in for vLLM on an H200, {speed:g} x speed)")
            typer.echo(f"page    {page}/#run={run_dir.name}   <- open this; it fills in while the load runs\n")
            code = _run(
                *("run", workload, "--target", engine, "--out", str(run_dir), "--slo", slo),
                *("--workers", str(workers), "--duration", duration, "--no-report"),
            )
            if code in {ExitCode.OK, ExitCode.SLO_MISSED}:
                code = _write_report(run_dir)
            if serve_after and code == ExitCode.OK:
                typer.echo(f"page stays up at {page}/#run={run_dir.name}; Ctrl-C ends it")
                signal.pause()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    raise typer.Exit(code)


def _check_duration(duration: str) -> None:
    try:
        seconds = parse_seconds(duration)
    except ValueError as error:
        raise InputError(str(error), field="--duration", value=duration) from error
    if seconds < 1:
        raise InputError("is too short for a run", field="--duration", value=duration, allowed="1s or more")


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _start(children: Children, name: str, preferred_port: int, health: str, *arguments: str) -> str:
    """Start a server, on another port where the preferred one is taken; its address, once it answers."""
    port = free_port(preferred_port)
    if port != preferred_port:
        typer.echo(f"port {preferred_port} is taken; the {name} uses {port}")
    children.start(name, [*arguments, "--port", str(port)])
    address = f"http://127.0.0.1:{port}"
    children.wait_until_up(name, address + health)
    return address


def _run(*arguments: str) -> int:
    """Run a `cliffwatch` command on our terminal; on Ctrl-C give it time to close its run properly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cliffwatch", *arguments],
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        end(process, grace_s=60)
        raise


def _write_report(run_dir: Path) -> int:
    report = run_dir / "report.html"
    code = _run("report", str(run_dir), "--html", str(report))
    if code in {ExitCode.OK, ExitCode.SLO_MISSED}:
        typer.echo(f"\nreport  {report}")
        return ExitCode.OK
    return code
