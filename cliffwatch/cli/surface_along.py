"""`cliffwatch surface knee`, where a curve begins to grow in another way; options of all commands along an axis."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import typer

from cliffwatch.surface.along import curves
from cliffwatch.surface.bins import AUTO, FORMS
from cliffwatch.surface.knee import find_knee
from cliffwatch.surface.source import open_source
from cliffwatch.surface.words import said_knee

knee_app = typer.Typer(add_completion=False)

RUN = typer.Argument(..., metavar="RUN", help="The folder of a run, or a file of measurements.")
METRIC = typer.Option("ttft_s", help="A figure of a request, such as ttft_s, itl_s, e2e_s.")
AXIS = typer.Option("input_tokens", help="The dimension to look along: input_tokens, batch, concurrency, rate, ...")
BY = typer.Option("batch", help="One curve for each value of this dimension.")
BINS = typer.Option(AUTO, help=f"Of the axis: {FORMS}.")
JSON = typer.Option(False, "--json", help="Print JSON for machines.")


@knee_app.command()
def knee(
    run: Path = RUN, metric: str = METRIC, axis: str = AXIS, by: str = BY, bins: str = BINS, as_json: bool = JSON
) -> None:
    """Say where latency or throughput begins to grow in another way along an axis: none, one or two places.

    Pieces of straight lines that meet; places have 95 % intervals. Exit codes: 0 good, 2 wrong input.
    """
    found = {
        label: find_knee(points) for label, points in curves(open_source(run), metric, axis, by, bins=bins).items()
    }
    if as_json:
        curves_of = {label: dataclasses.asdict(one) | {"phases": one.phases} for label, one in found.items()}
        typer.echo(json.dumps({"metric": metric, "axis": axis, "by": by, "curves": curves_of}))
        return
    typer.echo(f"knees of {metric} along {axis}")
    for label, one in found.items():
        typer.echo(f"  {by} {label}: {said_knee(one, metric)}")
