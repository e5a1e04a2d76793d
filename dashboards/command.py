"""`cliffwatch dashboards build`: every board as a JSON file that Grafana provisions or imports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer
from grafanalib.core import Dashboard

from cliffwatch.errors import InputError
from dashboards import engines, latency, load, overview, slo
from dashboards.export import board_text

# file name: the board
BOARDS: dict[str, Callable[[], Dashboard]] = {
    "overview": overview.board,
    "slo": slo.board,
    "latency": latency.board,
    "load": load.board,
    **engines.BOARDS,
}
DEFAULT_OUT = Path("deploy/grafana/dashboards")

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def dashboards() -> None:
    """Grafana boards as code."""


@app.command()
def build(
    out: Path = typer.Option(DEFAULT_OUT, "--out", help="Folder for the JSON files; made where it is missing."),
) -> None:
    """Write every board to OUT."""
    for name, board in BOARDS.items():
        path = out / f"{name}.json"
        try:
            out.mkdir(parents=True, exist_ok=True)
            path.write_text(board_text(board()), encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
        typer.echo(str(path))
