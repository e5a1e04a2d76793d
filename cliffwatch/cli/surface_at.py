"""`cliffwatch surface at`: a latency at a length and batch, tried or not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import typer

from cliffwatch.errors import InputError
from cliffwatch.units import parse_tokens, parse_whole

app = typer.Typer(add_completion=False)


@app.command()
def at(
    run: Path = typer.Argument(metavar="RUN", help="The folder of a run, or a file of measurements."),
    input_tokens: str = typer.Option(..., help="Of a prompt, such as 24k."),
    batch: str = typer.Option("1", help="Prompts in the request."),
    cached: bool | None = typer.Option(None, "--cached/--uncached", help="Needed where the run has both."),
    metric: str = typer.Option("ttft_s", help="ttft_s (of the slowest prompt of a batch), itl_s, e2e_s, ..."),
    statistic: str = typer.Option("p50", help="p50, p90, p95, p99 or mean."),
    extrapolate: bool = typer.Option(
        False, help="Answer outside what was measured too: marked, with a wider interval."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of words."),
) -> None:
    """What an untried length and batch would cost, by a surface over the measured ones, with a 90 % interval.

    Exit codes: 0 answered, 2 wrong input, outside what was measured, or too little measured.
    """
    from cliffwatch.surface.measured import read_cells
    from cliffwatch.surface.model import Surface
    from cliffwatch.surface.source import open_source
    from cliffwatch.surface.words import said

    tokens, prompts = _count(input_tokens, "--input-tokens", parse_tokens), _count(batch, "--batch", parse_whole)
    surface = Surface(read_cells(open_source(run), metric, cached=cached))
    answer = surface.at(tokens, prompts, statistic=statistic, extrapolate=extrapolate)
    if as_json:
        typer.echo(json.dumps(asdict(answer), indent=2, allow_nan=False))
        return
    for line in said(answer):
        typer.echo(line)


def _count(text: str, field: str, parse: Callable[[object], int]) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise InputError("is no count", field=field, value=text, allowed="such as 4 or 24k") from error
