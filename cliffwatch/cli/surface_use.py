"""`cliffwatch surface use`: how much of the hardware each cell used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich import box
from rich.table import Table

from cliffwatch.cli.console import console
from cliffwatch.cli.deployment import HARDWARE, KV_CACHE_DTYPE, MODEL, TENSOR_PARALLEL, WEIGHTS, deployment_of
from cliffwatch.errors import InputError
from cliffwatch.roofline.hardware import Dtype
from cliffwatch.roofline.step import Deployment
from cliffwatch.surface.measured import MeasuredCells, read_cells
from cliffwatch.surface.source import open_source
from cliffwatch.surface.use import PARTS, Share, UsedCell, laid, use
from cliffwatch.surface.words import said_use

app = typer.Typer(add_completion=False)


@app.command(name="use")
def use_command(
    run: Path = typer.Argument(metavar="RUN", help="The folder of a run, or a file of measurements."),
    hardware: str = HARDWARE,
    model: str = MODEL,
    part: str = typer.Option("", help=f"Only this part of the requests' time: {', '.join(PARTS)}."),
    cached: bool | None = typer.Option(None, "--cached/--uncached", help="Needed where the run has both."),
    weights: Dtype = WEIGHTS,
    kv_cache_dtype: Dtype = KV_CACHE_DTYPE,
    tensor_parallel: int = TENSOR_PARALLEL,
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
) -> None:
    """How much of the hardware's arithmetic (MFU) and memory bandwidth each length and batch used, by the roofline.

    Shares of the data sheet, for the work that the model needs: prefill by TTFT, decode by ITL, whole requests by E2E.
    Exit codes: 0 good, 2 wrong input.
    """
    deployment = deployment_of(hardware, model, weights, kv_cache_dtype, tensor_parallel)
    if part and part not in PARTS:
        raise InputError("unknown part", field="--part", value=part, allowed=", ".join(PARTS))
    source = open_source(run)
    found, reasons = {}, {}
    for name in [part] if part else PARTS:
        try:
            cells = read_cells(source, PARTS[name].metric, cached=cached)
            found[name] = cells, use(deployment, cells, name)
        except InputError as error:
            reasons[name] = error
    if not found:
        raise next(iter(reasons.values()))
    if as_json:
        typer.echo(json.dumps(_document(deployment, found, reasons), indent=2, allow_nan=False))
        return
    for name, (cells, used) in found.items():
        typer.echo(
            f"{name}, by {cells.metric}, cache {cells.cache}: arithmetic / memory bandwidth, % of the data sheet"
        )
        console().print(_table(used), "\n".join(said_use(deployment, used)), sep="")
    for name, reason in reasons.items():
        typer.echo(f"{name}: not known: {reason}")


def _document(
    deployment: Deployment, found: dict[str, tuple[MeasuredCells, tuple[UsedCell, ...]]], reasons: dict[str, InputError]
) -> dict[str, object]:
    parts = {
        name: {"metric": cells.metric, "cache": cells.cache, "cells": [asdict(one) for one in used]}
        for name, (cells, used) in found.items()
    }
    return {
        "hardware": deployment.hardware.name,
        "model": deployment.model.name,
        "peak_flop_s": deployment.peak_flop_s,
        "bandwidth_byte_s": deployment.bandwidth_byte_s,
        "parts": parts,
        "not_known": {name: str(reason) for name, reason in reasons.items()},
    }


def _table(used: Sequence[UsedCell]) -> Table:
    """Lengths down, batches across; a cell is arithmetic / bandwidth in percent."""
    table = laid(used)
    alike = len({one.n for one in used}) == 1
    screen = Table("tokens ↓\nbatch →", *map(str, table.batches), box=box.SIMPLE_HEAD)
    for label, line in zip(table.rows, table.cells, strict=True):
        screen.add_row(label, *("–" if one is None else _written(one, counted=not alike) for one in line))
    return screen


def _written(cell: UsedCell, *, counted: bool) -> str:
    shares = f"{_percent(cell.arithmetic)} / {_percent(cell.bandwidth)}"
    return f"{shares}\nn {cell.n}" if counted else shares


def _percent(share: Share | None) -> str:
    return "?" if share is None else f"{share.value * 100:.2g}" if share.value < 0.1 else f"{share.value * 100:.0f}"
