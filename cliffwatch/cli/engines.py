"""`cliffwatch engines`: what inference engines expose, and what a live one can be judged by."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from cliffwatch.cli.console import console
from cliffwatch.cli.fetch import fetch
from cliffwatch.engines.catalog import Engine, Metric, engine, engines
from cliffwatch.engines.detect import Detection, SliSupport, detect
from cliffwatch.engines.exposition import MAX_BYTES, read_exposition
from cliffwatch.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Know what inference engines expose.")
_JSON = typer.Option(False, "--json", help="Print JSON for machines.")


@app.command(name="list")
def list_engines(as_json: bool = _JSON) -> None:
    """List the engines of the catalog and the SLIs each can carry."""
    known = engines()
    if as_json:
        _print_json([{"name": one.name, "title": one.title, "slis": _slis(one)} for one in known])
        return
    rows = [
        [one.name, one.title, _span(one.versions.since, one.versions.until), ", ".join(_slis(one))] for one in known
    ]
    _print_table(["name", "engine", "versions", "SLIs from its metrics"], rows)


@app.command()
def show(
    name: str = typer.Argument(..., metavar="NAME", help="A name of `cliffwatch engines list`."),
    version: str = typer.Option(None, help="Only what this version exposes."),
    as_json: bool = _JSON,
) -> None:
    """Show an engine's metrics with unit, labels, bucket edges, versions and traps."""
    record = engine(name)
    metrics = [metric for metric in record.metrics if version is None or metric.in_version(version)]
    if as_json:
        _print_json(
            {
                **record.model_dump(mode="json", exclude={"metrics", "edges"}, by_alias=True),
                "metrics": [
                    {**metric.model_dump(mode="json"), "edges": record.edges_of(metric, version)} for metric in metrics
                ],
            }
        )
        return
    where = ", ".join(record.paths) + (f" on port {record.port}" if record.port else "")
    typer.echo(f"{record.title}, versions {_versions(record)}: {where}")
    typer.echo(f"switched on: {record.switch_on}\n")
    _print_table(["metric", "type", "unit", "versions", "meaning"], [_metric_row(metric) for metric in metrics])
    typer.echo("\nbucket edges" + (f" of {version}" if version else " (newest)") + ":")
    for key in dict.fromkeys(metric.edges for metric in metrics if metric.edges):
        edges = record.edges_of(next(metric for metric in metrics if metric.edges == key), version)
        flag = record.edge_flags.get(key)
        flag = None if flag and version and not flag.in_version(version) else flag
        changed = f"   changed by {flag.flag}{f', {flag.key}' if flag.key else ''}" if flag else ""
        typer.echo(f"  {key}: {' '.join(f'{edge:g}' for edge in edges or ())}{changed}")
    for trap in record.traps:
        typer.echo(f"note: {trap}")


@app.command(name="detect")
def detect_engine(
    source: str = typer.Argument(..., metavar="URL|FILE", help="A server, its metrics' address, or a saved scrape."),
    as_json: bool = _JSON,
) -> None:
    """Say which engine a server is, which versions it can be, and which SLIs its metrics can carry, and why not."""
    text, version, where = _read(source)
    found = detect(read_exposition(text, source=where), version=version)
    if found is None:
        names = ", ".join(one.name for one in engines())
        raise InputError("exposes the metrics of no engine that is known", file=where, allowed=f"one of {names}")
    if as_json:
        fields = asdict(found) | {"engine": found.engine.name, "source": where}
        fields["slis"] = [asdict(one) | {"supported": one.supported} for one in found.slis]
        _print_json(fields)
        return
    _show(found, where)


def _show(found: Detection, where: str) -> None:
    version = found.version or _span(found.since, found.until)
    said = "as it says itself" if found.version else "told from its metrics"
    typer.echo(f"{where}: {found.engine.title} {version} ({said})")
    counted = f"{len(found.matched)} of its metrics found, {len(found.missing)} missing, {found.unknown} not described"
    typer.echo(f"{counted}{': ' + ', '.join(found.missing) if found.missing else ''}\n")
    _print_table(["SLI", "from", "counted", "edges", "note"], [_sli_row(one) for one in found.slis])
    for note in found.notes:
        typer.echo(f"note: {note}")


def _sli_row(one: SliSupport) -> list[str]:
    if not one.supported:
        return [one.sli, "no", "", "", one.reason or ""]
    kind = {True: "default", False: "own", None: ""}[one.edges_are_default]
    edges = f"{len(one.edges)} {kind}, {one.edges[0]:g} to {one.edges[-1]:g} {one.unit}" if one.edges else "counter"
    return [one.sli, one.metric or "", f"per {one.per}", edges, one.reason or ""]


def _metric_row(metric: Metric) -> list[str]:
    meaning = metric.means + (f" ({metric.trap})" if metric.trap else "")
    versions = _span(metric.since, metric.until) + (" with a feature" if metric.optional else "")
    return [metric.name, metric.type, metric.unit, versions, meaning]


def _slis(one: Engine) -> list[str]:
    return [name for name, source in one.slis.items() if source.metrics]


def _versions(one: Engine) -> str:
    return _span(one.versions.since, one.versions.until)


def _span(since: str | None, until: str | None) -> str:
    if since is None and until is None:
        return "all"
    return " ".join(part for part in (f"from {since}" if since else "", f"before {until}" if until else "") if part)


def _read(source: str) -> tuple[str, str | None, str]:
    """The text of the metrics, the version that the server names (None if it does not), and where both came from."""
    if "://" not in source:
        file = Path(source)
        if not file.is_file():
            raise InputError("is neither an address nor a file", file=source, allowed="http://HOST:PORT, or a file")
        if file.stat().st_size > MAX_BYTES:
            raise InputError("is too large", file=source, allowed=f"up to {MAX_BYTES} bytes")
        return file.read_text(encoding="utf-8", errors="replace"), None, source
    base = source.rstrip("/")
    paths = sorted({path for one in engines() for path in one.paths})
    refusal: InputError | None = None
    for where in [base] if base.endswith("/metrics") else [base + path for path in paths]:
        text = fetch(where, limit=MAX_BYTES, missing_ok=True)
        if text is None:
            continue
        try:
            read_exposition(text, source=where)
        except InputError as error:  # TensorRT-LLM has JSON at one path and the text at another
            refusal = error
        else:
            return text, _version(base), where
    raise refusal or InputError("has no metrics", file=base, allowed=f"a server with one of {', '.join(paths)}")


def _version(base: str) -> str | None:
    root = "/".join(base.split("/")[:3])
    text = fetch(f"{root}/version", limit=10_000, missing_ok=True)
    try:
        said: Any = json.loads(text or "null")
    except ValueError:
        return None
    version = said.get("version") if isinstance(said, dict) else None
    return version if isinstance(version, str) and any(letter.isdigit() for letter in version) else None


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


def _print_table(head: list[str], rows: list[list[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    console().print(table)
