"""`cliffwatch workload`: preview, check and start workload files. Sends nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer
from rich.console import Console

from cliffwatch.cli.console import console
from cliffwatch.cli.files import write_new
from cliffwatch.config import check_config
from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import SteadyArrivals, TraceArrivals
from cliffwatch.workload.fitting import fit
from cliffwatch.workload.picture import render, render_fit, repair_lines
from cliffwatch.workload.preview import preview
from cliffwatch.workload.schedule import plan_blocks
from cliffwatch.workload.spec import Workload, load_workload, preset_names, preset_text
from cliffwatch.workload.traces.rows import Repairs

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Preview, check and create workload files.")

_WORKLOAD = typer.Argument(..., metavar="FILE|PRESET", help="A workload file or the name of a preset.")


@app.command(name="preview")
def show(
    workload: str = _WORKLOAD,
    json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
    shards: int = typer.Option(1, min=1, max=1000, help="Also show what each of so many workers would send."),
) -> None:
    """Print what a workload will send: rates, lengths, batches, phases, mixes, tokens, retries. Sends nothing."""
    try:
        figures = preview(load_workload(workload), shards=shards)
    except InputError as error:
        error.file = error.file or workload
        raise
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(figures), indent=2))
    else:
        console().print(render(figures))


@app.command()
def check(workload: str = _WORKLOAD) -> None:
    """Say that a workload file is well formed, or what is wrong in it (exit code 2). Reads a trace to its end."""
    spec = load_workload(workload)
    seconds = f"{spec.duration:g} s" if spec.duration else ""
    requests = f"{spec.requests:,} requests" if spec.requests else ""
    extent = " or ".join(filter(None, (seconds, requests)))
    typer.echo(f"{spec.name}: well formed; {_pace(spec)}{extent and f', for {extent}'}")
    if isinstance(spec.arrivals, TraceArrivals):
        repairs = Repairs()
        count = sum(len(block) for block in plan_blocks(spec, repairs=repairs))
        typer.echo(f"{spec.arrivals.file}: {count:,} requests to send")
        for line in repair_lines(repairs):
            typer.echo(line)


def _pace(spec: Workload) -> str:
    if spec.users:
        return f"{spec.users:,} users in a closed loop"
    kind = f"{spec.arrivals.kind} arrivals{'' if spec.sessions is None else ' of sessions'}"
    if isinstance(spec.arrivals, SteadyArrivals):
        return f"{kind}, {spec.arrivals.rate:g}/s"
    expected = spec.expected_arrivals(spec.duration) if spec.duration else None
    mean = f", {expected / spec.duration:.4g}/s on average" if expected and spec.duration else ""
    return f"{kind}{mean}"


@app.command()
def init(
    path: Path = typer.Argument(..., metavar="PATH", help="The file to write; it must not exist yet."),
    preset: str = typer.Option("longtail", help="The preset to start from."),
) -> None:
    """Write a preset to a new file, to be changed to your own traffic."""
    write_new(path, preset_text(preset))
    typer.echo(f"wrote {path}; look at it with: cliffwatch workload preview {path}")


@app.command(name="fit")
def fit_trace(
    trace: str = typer.Argument(
        ...,
        metavar="TRACE",
        help="A trace, or a workload file (.yaml) whose arrivals are one, with its slice and columns.",
    ),
    out: Path | None = typer.Option(
        None, help="The workload file to write; it must not exist yet. Else to the terminal."
    ),
    format_: str = typer.Option("auto", "--format", help="The trace's format, where it is not told from its columns."),
    time_unit: str | None = typer.Option(None, help="Unit of the trace's times: s, ms, us or ns."),
    json: bool = typer.Option(False, "--json", help="Print the fidelity as JSON."),
) -> None:
    """Fit a workload file to a trace, so that private traffic can be replayed without any of its requests."""
    found = fit(_trace(trace, format_, time_unit))
    if out is None and not json:
        typer.echo(found.text, nl=False)
    if out is not None:
        write_new(out, found.text)
    if json:
        figures = {"workload": found.workload.model_dump(mode="json"), "fidelity": found.fidelity}
        figures |= {"complete": found.complete, "repairs": found.repairs, "notes": found.notes}
        typer.echo(msgspec.json.format(msgspec.json.encode(figures), indent=2))
        return
    Console(stderr=out is None).print(render_fit(found))
    if out is not None:
        typer.echo(f"wrote {out}; look at it with: cliffwatch workload preview {out}")


def _trace(path: str, format_: str, time_unit: str | None) -> TraceArrivals:
    if path.endswith((".yaml", ".yml")):
        arrivals = load_workload(path).arrivals
        if not isinstance(arrivals, TraceArrivals):
            raise InputError(
                "is no trace to fit", file=path, field="arrivals.kind", value=arrivals.kind, allowed="trace"
            )
        return arrivals
    fields = {"kind": "trace", "file": path, "format": format_, "time_unit": time_unit}
    return check_config(fields, TraceArrivals, source="options")


@app.command()
def presets() -> None:
    """List the workloads that come with cliffwatch."""
    for name in preset_names():
        typer.echo(f"{name}: {load_workload(name).description}")
