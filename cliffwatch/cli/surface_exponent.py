"""`cliffwatch surface exponent`: how a latency scales along an axis."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import typer

from cliffwatch.cli.surface_along import BINS, BY, JSON, METRIC, RUN
from cliffwatch.surface.along import curves
from cliffwatch.surface.exponent import Scaling, Slope, scaling
from cliffwatch.surface.series import series_of
from cliffwatch.surface.source import open_source

app = typer.Typer(add_completion=False)


@app.command()
def exponent(
    run: Path = RUN,
    metric: str = METRIC,
    axis: str = typer.Option("input_tokens", help="The dimension to scale along: input_tokens, batch, ..."),
    by: str = BY,
    bins: str = BINS,
    as_json: bool = JSON,
) -> None:
    """Say with which power of length (or another axis) the median latency grows, or that it follows no power law.

    Exponents have 95 % intervals. Exit codes: 0 good, 2 wrong input.
    """
    found = {
        label: scaling(series_of(points))
        for label, points in curves(open_source(run), metric, axis, by, bins=bins).items()
    }
    if as_json:
        curves_of = {label: dataclasses.asdict(one) for label, one in found.items()}
        typer.echo(json.dumps({"metric": metric, "axis": axis, "by": by, "curves": curves_of}))
        return
    typer.echo(f"scaling of p50 of {metric} with {axis}")
    for label, one in found.items():
        typer.echo(f"  {by} {label}: {_said(one, metric, axis)}")


def _said(found: Scaling, metric: str, axis: str) -> str:
    if found.whole is None or found.start is None or found.end is None:
        return f"too little data to say ({found.too_few}; n {found.n})"
    counted = f"{found.points} points (n {found.n})"
    if found.not_a_law is None:
        return f"{metric} ~ {axis}^{_written(found.whole)}, {counted}"
    return (
        f"no power law: {found.not_a_law}; {axis}^{_written(found.start)} at the start, ^{_written(found.end)} at the"
        f" end, ^{found.whole.exponent:.2f} over all, {counted}"
    )


def _written(slope: Slope) -> str:
    return f"{slope.exponent:.2f} (95 %: {slope.low:.2f} to {slope.high:.2f})"
