"""`cliffwatch compare`: a new run against a base run, as a table, JSON, Markdown or JUnit; a gate for CI."""

from __future__ import annotations

from pathlib import Path

import typer

from cliffwatch.cli.console import console
from cliffwatch.cli.files import write_text
from cliffwatch.compare.comparable import REFUSED
from cliffwatch.compare.compare import DEFAULT_ALPHA, DEFAULT_POINTS, DEFAULT_THRESHOLD, Rule
from cliffwatch.compare.result import Change, Comparison
from cliffwatch.errors import ExitCode, InputError
from cliffwatch.slo.spec import load_run_slo
from cliffwatch.units import parse_share

app = typer.Typer(add_completion=False)
MAX_ALPHA = 0.5
_ALLOWED = ", ".join(REFUSED)


@app.command()
def compare(
    base: Path = typer.Argument(..., metavar="BASE", help="The folder of the run to compare with."),
    new: Path = typer.Argument(..., metavar="NEW", help="The folder of the new run."),
    threshold: str = typer.Option(
        f"{DEFAULT_THRESHOLD * 100:g}%", help="Least change that matters, of the base's value."
    ),
    points: str = typer.Option(f"{DEFAULT_POINTS * 100:g}%", help="Least change of a share that matters, in points."),
    alpha: str = typer.Option(f"{DEFAULT_ALPHA:g}", help="Chance of any false alarm, over all figures."),
    metric: list[str] = typer.Option(
        [], help="Compare only this figure (ttft, itl_p99, goodput, ...); may be repeated."
    ),
    slo: str = typer.Option(None, help="SLO file or preset for goodput; default: the runs' own, if the same."),
    allow: list[str] = typer.Option([], help=f"Let this differ: {_ALLOWED}; may be repeated."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of the table."),
    markdown: Path = typer.Option(None, help="Also write Markdown, for a comment or a job's summary."),
    junit: Path = typer.Option(None, help="Also write JUnit XML, for CI systems."),
    strict: bool = typer.Option(False, help="Treat too little data as a regression."),
) -> None:
    """Say which figures of NEW are better or worse than those of BASE.

    Exit codes: 0 no regression shown, 1 a figure regressed, 2 wrong input or runs that are not comparable, 3 a run is
    INVALID.
    """
    rule = Rule(
        alpha=_share("--alpha", alpha, above=0, below=MAX_ALPHA),
        threshold=_share("--threshold", threshold),
        points=_share("--points", points),
    )
    if unknown := next((name for name in allow if name not in REFUSED), None):
        raise InputError("is nothing that can be allowed to differ", field="--allow", value=unknown, allowed=_ALLOWED)
    from cliffwatch.compare.compare import compare as compare_runs
    from cliffwatch.records.reader import RunReader

    compared = compare_runs(
        RunReader(base), RunReader(new), load_run_slo(slo) if slo else None, metrics=metric, rule=rule, allowed=allow
    )
    _write(compared, markdown, junit)
    _show(compared, as_json=as_json)
    raise typer.Exit(exit_code(compared, strict=strict))


def exit_code(compared: Comparison, *, strict: bool = False) -> ExitCode:
    """An INVALID run says nothing, whatever its figures are."""
    if compared.invalid:
        return ExitCode.RUN_INVALID
    failed = compared.having(Change.REGRESSED) or (strict and compared.having(Change.TOO_FEW_DATA))
    return ExitCode.SLO_MISSED if failed else ExitCode.OK


def _share(option: str, text: str, *, above: float = -1, below: float = 2) -> float:
    try:
        value = parse_share(text)
    except ValueError as error:
        raise InputError(str(error), field=option, value=text) from error
    if not above < value < below:
        raise InputError("is out of range", field=option, value=text, allowed=f"above {above:g} and below {below:g}")
    return value


def _write(compared: Comparison, markdown: Path | None, junit: Path | None) -> None:
    from cliffwatch.compare.junit import render as render_junit
    from cliffwatch.compare.markdown import render as render_markdown

    for path, render in ((markdown, render_markdown), (junit, render_junit)):
        if path is not None:
            write_text(path, render(compared))


def _show(compared: Comparison, *, as_json: bool) -> None:
    if as_json:
        typer.echo(compared.model_dump_json(indent=2))
        return
    from cliffwatch.compare.table import render

    console().print(render(compared))
