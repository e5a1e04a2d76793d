"""`cliffwatch slo export` and `slo import`: SLO files of other tools."""

from __future__ import annotations

from pathlib import Path

import typer

from cliffwatch.cli.files import write_text
from cliffwatch.config import read_config_text
from cliffwatch.engines.catalog import engine
from cliffwatch.errors import InputError
from cliffwatch.slo.foreign.formats import FORMATS
from cliffwatch.slo.foreign.formats import import_slo as imported
from cliffwatch.slo.foreign.native import slo_yaml
from cliffwatch.slo.foreign.openslo_write import openslo_text
from cliffwatch.slo.spec import load_slo


def export_slo(
    file: str = typer.Argument(..., metavar="FILE", help="An SLO file or the name of a preset."),
    form: str = typer.Option("openslo", "--format", help="Only openslo (version 1)."),
    out: str = typer.Option("", metavar="PATH", help="Write here; else to standard output."),
) -> None:
    """Write an SLO file as OpenSLO; `slo import` reads it back without loss."""
    if form != "openslo":
        raise InputError("is no format to write", field="--format", value=form, allowed="openslo")
    put(openslo_text(load_slo(file)), out)


def import_slo(
    file: Path = typer.Argument(..., metavar="FILE", help="An SLO file of OpenSLO, Sloth or Pyrra."),
    form: str = typer.Option("", "--from", help=f"One of {', '.join(FORMATS)}; else the file tells."),
    engine_name: str = typer.Option("", "--engine", help="The engine to watch, where no query names a known one."),
    out: str = typer.Option("", metavar="PATH", help="Write here; else to standard output."),
) -> None:
    """Make an SLO file of another tool's. Says what is not kept, and refuses (exit code 2) what cannot be exact."""
    if form and form not in FORMATS:
        raise InputError("is no format to read", field="--from", value=form, allowed=", ".join(FORMATS))
    if engine_name:
        engine(engine_name)
    found = imported(read_config_text(file), form=form or None, engine_name=engine_name or None, source=str(file))
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    put(slo_yaml(found.slo), out)


def put(text: str, out: str) -> None:
    """Write to a file, or to standard output where there is none. Raises InputError."""
    if not out:
        typer.echo(text, nl=False)
        return
    write_text(Path(out), text)
