"""`cliffwatch import`: measurements of other tools as a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import typer

from cliffwatch.errors import InputError

app = typer.Typer(add_completion=False)


@app.command(name="import")
def import_file(
    file: Path = typer.Argument(..., metavar="FILE", help="JSON lines, CSV (each also .gz) or Parquet."),
    out: Path = typer.Option(..., metavar="DIR", help="The run folder to write; it must not hold a run yet."),
    name: str = typer.Option("", help="What the run is called; the file's own name unless given."),
    engine: str = typer.Option("", help="The engine that was measured, such as vllm."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
) -> None:
    """Keep another tool's measurements as a run, so that reports, the page and surfaces read them.

    One line is a request (or, with a column `seq`, one sequence of a batch) with `input_tokens` and at least one of
    `ttft`, `itl_mean`, `e2e`: seconds, or `ttft_ms` and so on. `batch`, `cache`, `output_tokens`, `wall` (when it was
    sent, Unix seconds), `status`, `error`, `model`, `replica`, `tenant` are taken where they are there.
    """
    from cliffwatch.records.importing import import_run

    called = name or file.name.split(".")[0]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", called):
        allowed = "letters, digits, dots, dashes; 100 at most"
        raise InputError("is no name of a run", field="--name", value=called, allowed=allowed)
    manifest, foreign = import_run(file, out, name=called, engine=engine or None)
    if as_json:
        found = {"run": str(out), "run_id": manifest.run_id, "lines": foreign.lines, "requests": foreign.requests}
        typer.echo(json.dumps(found | {"columns": dict(foreign.columns), "missing": list(foreign.missing)}))
        return
    typer.echo(f"{out}: {foreign.requests:,} requests from {foreign.lines:,} lines")
    typer.echo("  read: " + ", ".join(f"{what} from `{column}`" for what, column in foreign.columns.items()))
    if foreign.missing:
        typer.echo("  not in the file, so not known: " + ", ".join(foreign.missing))
