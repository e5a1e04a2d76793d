"""`cliffwatch surface drift`: how far a knee moved from run to run, and what moved it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import typer
from pydantic import Field

from cliffwatch.config import ConfigModel, load_config
from cliffwatch.errors import InputError
from cliffwatch.surface.along import curves
from cliffwatch.surface.bins import AUTO, FORMS
from cliffwatch.surface.drift import Drift, KneeOfRun, fit_drift, shift
from cliffwatch.surface.knee import find_knee
from cliffwatch.surface.source import open_source
from cliffwatch.surface.words import said_move, written_place

app = typer.Typer(add_completion=False)


class DriftRun(ConfigModel):
    """One run: where it is, and what differed in it."""

    run: Path
    rho: float = Field(ge=0, le=1)
    g: float = Field(ge=0, le=1)


class DriftFile(ConfigModel):
    """The runs to compare, the one to compare with first."""

    runs: list[DriftRun] = Field(min_length=2, max_length=200)


@app.command()
def drift(
    file: Path = typer.Argument(..., metavar="FILE", help="YAML: `runs`, each with `run`, `rho` and `g`."),
    metric: str = typer.Option("ttft_s", help="A figure of a request, such as ttft_s, itl_s, e2e_s."),
    axis: str = typer.Option("batch", help="The dimension that the knee is on: batch, concurrency, rate, ..."),
    bins: str = typer.Option(AUTO, help=f"Of the axis: {FORMS}."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
) -> None:
    """Say how far the first knee moved between runs, and how much of it rho and g explain.

    The model is x* = x0 (1 - a rho)^(b g): rho is a share that takes room away (fragmentation, cache in use), g a share
    of what makes room matter (CUDA graphs on: 1, off: 0; uncached prompts). Says where the data cannot tell.
    """
    runs = load_config(file, DriftFile).runs
    knees = [_knee(file.parent / one.run, one, metric, axis, bins) for one in runs]
    shifts = [shift(knees[0], knee) for knee in knees[1:]]
    fitted = fit_drift(knees)
    if as_json:
        told = {"knees": [dataclasses.asdict(knee) for knee in knees], "drift": dataclasses.asdict(fitted)}
        typer.echo(json.dumps(told | {"shifts": [dataclasses.asdict(one) for one in shifts]}))
        return
    places = [written_place(knee.at, knee.low, knee.high) for knee in knees]
    typer.echo(f"knee of {metric} along {axis}, against {runs[0].run}: {places[0]}")
    for one, place, moved in zip(runs[1:], places[1:], shifts, strict=True):
        typer.echo(f"  {one.run} (rho {one.rho:g}, g {one.g:g}): {place}, {said_move(moved)}")
    typer.echo(_why(fitted))


def _knee(path: Path, one: DriftRun, metric: str, axis: str, bins: str) -> KneeOfRun:
    (points,) = curves(open_source(path), metric, axis, "phase", bins=bins).values() or ([],)
    found = find_knee(points)
    if not found.breaks:
        why = found.too_few or "its curve has no knee"
        raise InputError(f"nothing to compare: {why}", file=path, field="runs.run", value=str(one.run))
    first = found.breaks[0]
    return KneeOfRun(first.at, first.low, first.high, one.rho, one.g)


def _why(fitted: Drift) -> str:
    if fitted.a is None or fitted.b is None:
        return f"why: cannot be told from these {fitted.runs} runs: {fitted.unknown}"
    spans = {name: f"{low:.3g} to {high:.3g}" for name, (low, high) in fitted.intervals.items()}
    said = (
        f"why: x0 {fitted.x0:.4g} (95 %: {spans['x0']}), a {fitted.a:.3g} ({spans['a']}),"
        f" b {fitted.b:.3g} ({spans['b']});"
        f" rho and g explain {fitted.explained:.0%} of the scatter (p {fitted.p_effect:.1g}, {fitted.runs} runs)"
    )
    if fitted.p_fit is not None and fitted.p_fit < 0.05:
        said += f"; the model fits badly (p {fitted.p_fit:.1g}): something else moved the knee, too"
    return said
