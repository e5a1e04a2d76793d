"""`cliffwatch dashboards`: boards as JSON files that Grafana provisions or imports, and their linter."""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path
from typing import Any

import typer
from grafanalib.core import Dashboard

from cliffwatch.errors import ExitCode, InputError
from dashboards import engines, gpu, latency, load, overview, slo
from dashboards.export import board_json, board_text
from dashboards.lint import lint as findings_of

# file name: the board
BOARDS: dict[str, Callable[[], Dashboard]] = {
    "overview": overview.board,
    "slo": slo.board,
    "latency": latency.board,
    "load": load.board,
    **engines.BOARDS,
    "gpu": gpu.board,
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


@app.command()
def lint(
    files: list[Path] = typer.Argument(None, help="Boards as JSON; the project's own unless given."),
    as_json: bool = typer.Option(False, "--json", help="Findings as JSON."),
) -> None:
    """Find mistakes that make a board lie or stay empty (exit code 1 where there are any)."""
    boards = {str(path): _read(path) for path in files or ()} or {name: board_json(of()) for name, of in BOARDS.items()}
    found = [{"board": name, **finding} for name, board in boards.items() for finding in _findings(name, board)]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for one in found:
            typer.echo(f"{one['board']}: {one['place']}: {one['rule']}: {one['says']}")
        typer.echo(f"{len(boards)} boards, {len(found)} findings", err=True)
    raise typer.Exit(ExitCode.SLO_MISSED if found else ExitCode.OK)


def _findings(name: str, board: dict[str, Any]) -> list[dict[str, str]]:
    try:
        return [one.model_dump() for one in findings_of(board)]
    except (AttributeError, TypeError) as error:
        raise InputError("is no board as Grafana stores it", file=name, allowed="JSON as Grafana exports it") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        board = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", file=path) from error
    if not isinstance(board, dict) or not isinstance(board.get("panels"), list):
        raise InputError("is no board: it has no list of panels", file=path, allowed="JSON as Grafana exports it")
    return board


@app.command()
def diff(
    against: Path = typer.Option(DEFAULT_OUT, "--against", help="Folder of the JSON files to compare."),
) -> None:
    """Show how files differ from what the code builds now (exit code 1 where they do)."""
    differ = False
    for name, board in BOARDS.items():
        path = against / f"{name}.json"
        try:
            old = path.read_text(encoding="utf-8") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", file=path) from error
        lines = list(unified_diff(old.splitlines(), board_text(board()).splitlines(), str(path), "built", lineterm=""))
        differ = differ or bool(lines)
        for line in lines:
            typer.echo(line)
    raise typer.Exit(ExitCode.SLO_MISSED if differ else ExitCode.OK)
