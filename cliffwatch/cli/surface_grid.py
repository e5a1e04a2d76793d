"""`cliffwatch surface grid`: a statistic of a latency over two or three dimensions of the traffic."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cliffwatch.cli.console import console
from cliffwatch.cli.prometheus_options import CA_FILE, TOKEN_FILE
from cliffwatch.errors import InputError
from cliffwatch.report.words import printable, seconds_interval, share
from cliffwatch.slo.live.asks import Asker
from cliffwatch.surface.bins import AUTO, FORMS
from cliffwatch.surface.cells import STATISTICS, Cell
from cliffwatch.surface.dimensions import DIMENSIONS
from cliffwatch.surface.document import comma_separated, document
from cliffwatch.surface.grid import Grid, GridSource, Question, RowsSource
from cliffwatch.units import DURATION_FORMS, format_seconds, parse_seconds

app = typer.Typer(add_completion=False)
FEW = "†"


@app.command()
def grid(
    run: Path = typer.Argument(
        None, metavar="[RUN]", help="The folder of a run, or a file of measurements; or none, with --prometheus."
    ),
    metric: str = typer.Option("ttft_s", help="A figure of a request, such as ttft_s, itl_s, e2e_user_s."),
    statistic: str = typer.Option("p95", help=f"One of {', '.join(STATISTICS)}."),
    rows: str = typer.Option("", help=f"One of {', '.join(DIMENSIONS)}; input_tokens (with --prometheus: time)."),
    columns: str = typer.Option("", help="Likewise; batch (with --prometheus: model)."),
    facet: str = typer.Option("", help="A third dimension: one grid for each of its values."),
    row_bins: str = typer.Option(AUTO, help=f"{FORMS}."),
    column_bins: str = typer.Option(AUTO, help="Likewise."),
    facet_bins: str = typer.Option(AUTO, help="Likewise."),
    phase: str = typer.Option("measured", help="measured, warmup, cold or all."),
    threshold: str = typer.Option("", help="With --statistic attainment: such as 500ms."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of the table."),
    as_csv: bool = typer.Option(False, "--csv", help="Print CSV, a cell a row."),
    prometheus: str = typer.Option(
        "", metavar="URL", help="Ask an engine's histograms there in place of a run's rows."
    ),
    prometheus_token_file: Path | None = TOKEN_FILE,
    prometheus_ca_file: Path | None = CA_FILE,
    engine: str = typer.Option("vllm", help="With --prometheus: whose metrics these are."),
    engine_match: list[str] = typer.Option([], metavar="LABEL=VALUE", help="With --prometheus: a label of its series."),
    last: str = typer.Option("1h", help="With --prometheus: how far back."),
) -> None:
    """A statistic of a latency over two or three dimensions, with n, 95 % interval and few-samples mark of each cell.

    From Prometheus, percentiles are the bucket edges around them. Exit codes: 0 good, 2 wrong input, 4 Prometheus does
    not answer.
    """
    if as_json and as_csv:
        raise InputError("do not go together", field="--json, --csv", allowed="one of them")
    if (run is None) != bool(prometheus):
        raise InputError("needs one source", field="RUN", allowed="the folder of a run, or --prometheus URL")
    question = Question(
        metric=metric,
        statistic=statistic,
        rows=rows or ("time" if prometheus else "input_tokens"),
        columns=columns or ("model" if prometheus else "batch"),
        phase=phase,
        threshold=_seconds(threshold, "--threshold") if threshold else None,
        facet=facet or None,
        row_bins=row_bins,
        column_bins=column_bins,
        facet_bins=facet_bins,
    )
    if prometheus:
        from cliffwatch.cli.prometheus import prometheus as server_at

        server = server_at(prometheus, prometheus_token_file, ca_file=prometheus_ca_file)
        source = _engine(server.ask_all, engine, engine_match, last)
    else:
        source = _rows(run)
    grids = source.grids(question)
    if as_json:
        typer.echo(json.dumps(document(grids), indent=2, allow_nan=False))
    elif as_csv:
        typer.echo(comma_separated(grids), nl=False)
    else:
        console().print(_screen(grids))


def _rows(run: Path) -> GridSource:
    from cliffwatch.surface.source import open_source

    return RowsSource(open_source(run))


def _engine(ask: Asker, name: str, match: Sequence[str], last: str) -> GridSource:
    from cliffwatch.engines.catalog import engine
    from cliffwatch.slo.beside.compare import read_match
    from cliffwatch.surface.engine_source import EngineSource

    now_s, span_s = time.time(), _seconds(last, "--last")
    return EngineSource(ask, engine(name), read_match(match), now_s - span_s, now_s)


def _seconds(text: str, field: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise InputError("is no length of time", field=field, value=text, allowed=DURATION_FORMS) from error
    if seconds <= 0:
        raise InputError("must be over 0", field=field, value=text)
    return seconds


def _screen(grids: Sequence[Grid]) -> Group:
    if not grids or not any(one.n for one in grids):
        return Group(Text("no request has that figure and these dimensions"), *_notes(grids))
    parts: list[RenderableType] = []
    for one in grids:
        parts += [_table(one), Text(f"{one.n:,} requests", "dim")]
    return Group(*parts, *_notes(grids))


def _table(one: Grid) -> Table:
    asked = one.question
    title = f"{asked.statistic} of {asked.metric}, {asked.phase} requests"
    if one.facet is not None:
        title += f", {asked.facet} {printable(one.facet)}"
    head = f"{_side(asked.rows, one.rows.unit)} ↓\n{_side(asked.columns, one.columns.unit)} →"
    table = Table(head, *map(printable, one.columns.labels), title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for label, line in zip(one.rows.labels, one.cells, strict=True):
        table.add_row(printable(label), *(_written(cell, one.unit) for cell in line))
    return table


def _side(name: str, unit: str) -> str:
    return name if unit in {"", "tokens", "prompts", "requests"} else f"{name} ({unit})"


def _written(cell: Cell, unit: str) -> str:
    if not cell.n:
        return "–"
    ends = [value for value in (cell.low, cell.high) if value is not None]
    known = [] if cell.value is None else [number(cell.value, unit)]
    if len(ends) == 2:
        known.append(seconds_interval(*ends) if unit == "s" else f"{number(ends[0], unit)}–{number(ends[1], unit)}")
    elif ends:
        known.append(f"over {number(ends[0], unit)}")
    return "\n".join([*(known or ["–"]), f"n {cell.n:,}{f' {FEW}' if cell.few else ''}"])


def number(value: float, unit: str) -> str:
    """A value of a cell in its unit."""
    if unit == "s":
        return format_seconds(value)
    return share(value) if unit == "ratio" else f"{value:,.4g}"


def _notes(grids: Sequence[Grid]) -> list[RenderableType]:
    notes = []
    if grids:
        first = grids[0]
        notes = [f"{axis.name}: {axis.why}" for axis in (first.rows, first.columns)]
        if any(cell.low is not None for one in grids for row in one.cells for cell in row):
            notes.append(
                "a range is the 95 % interval of the value over it; alone, the edges that the value lies between"
            )
        if any(cell.few for one in grids for row in one.cells for cell in row if cell.n):
            notes.append(f"{FEW} fewer requests than the statistic asks for; – too few to tell")
        if first.unplaced:
            notes.append(f"{first.unplaced:,} requests lack one of the dimensions and are in no cell")
        notes += first.notes
    return [Text(note, "dim") for note in notes]
