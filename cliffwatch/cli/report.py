"""`cliffwatch report`: judge a run and show it as a table, as JSON, or as one HTML file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from cliffwatch.cli.console import console
from cliffwatch.cli.deployment import HARDWARE, KV_CACHE_DTYPE, MODEL, TENSOR_PARALLEL, WEIGHTS, deployment_of
from cliffwatch.cli.files import write_text
from cliffwatch.cli.prometheus_options import CA_FILE, TOKEN_FILE
from cliffwatch.errors import ExitCode, InputError
from cliffwatch.records.files import shards_dir
from cliffwatch.records.folder import SLO_FILE, WORKLOAD_FILE
from cliffwatch.records.manifest import FILE_NAME
from cliffwatch.records.schema import Outcome, Phase
from cliffwatch.report.groups import Grouping
from cliffwatch.report.summary import Report, own_slo, summarize
from cliffwatch.roofline.hardware import Dtype
from cliffwatch.slo.judgement import Status
from cliffwatch.slo.spec import load_run_slo

app = typer.Typer(add_completion=False)


class PhaseChoice(StrEnum):
    """What `--phase` accepts: a phase of the run, or all of them together."""

    MEASURED = "measured"
    WARMUP = "warmup"
    COLD = "cold"
    ALL = "all"


@app.command()
def report(
    run_dir: Path = typer.Argument(..., metavar="DIR", help="The folder of the run."),
    slo: str = typer.Option(None, help="An SLO file or the name of a preset; default: the run's own."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines instead of the table."),
    html: Path | None = typer.Option(None, help="Also write the report as one self-contained HTML file."),
    phase: PhaseChoice = typer.Option(PhaseChoice.MEASURED, help="Which requests to judge."),
    by: Grouping = typer.Option(None, help="Also show the requests apart, by what they were."),
    strict: bool = typer.Option(False, help="Treat too few data as missed."),
    prometheus: str = typer.Option(
        "", metavar="URL", help="Also show the engine's own figures over the same time, from this Prometheus."
    ),
    prometheus_token_file: Path | None = TOKEN_FILE,
    prometheus_ca_file: Path | None = CA_FILE,
    engine_match: list[str] = typer.Option(
        [], metavar="LABEL=VALUE", help="A label of the engine's series beside its model's; may be given several times."
    ),
    against: Path | None = typer.Option(
        None, metavar="DIR", help="A run whose knees this one's are drawn beside, with how far they moved; for --html."
    ),
    hardware: str = HARDWARE,
    model: str = MODEL,
    weights: Dtype = WEIGHTS,
    kv_cache_dtype: Dtype = KV_CACHE_DTYPE,
    tensor_parallel: int = TENSOR_PARALLEL,
    cached: bool | None = typer.Option(None, "--cached/--uncached", help="Which requests' use of --hardware to draw."),
) -> None:
    """Judge a run against its SLOs.

    With --hardware and --model the HTML report also draws how much of that hardware each length and batch used.
    Exit codes: 0 all met (or no SLO, or too few data to say), 1 missed, 2 wrong input, 3 the run is INVALID,
    4 Prometheus does not answer.
    """
    from cliffwatch.records.reader import RunReader

    if html is not None:
        _refuse_own_files(html, run_dir)
    elif hardware or model or against is not None:
        raise InputError("is missing: pictures are for it", field="--html", allowed="the file to write")
    deployment = None
    if hardware or model:
        deployment = deployment_of(hardware, model, weights, kv_cache_dtype, tensor_parallel)
    other = None if against is None else RunReader(against)
    chosen = None if phase is PhaseChoice.ALL else Phase(phase)
    reader = RunReader(run_dir)
    by_slo = load_run_slo(slo) if slo else own_slo(run_dir)
    judged = summarize(reader, by_slo, phase=chosen, by=by)
    if prometheus:
        from cliffwatch.cli.prometheus import prometheus as server_at
        from cliffwatch.slo.beside.compare import beside, read_match

        server = server_at(prometheus, prometheus_token_file, ca_file=prometheus_ca_file)
        found = beside(reader, by_slo, server.ask_all, read_match(engine_match))
        judged = judged.model_copy(update={"beside": found})
    else:
        _refuse_without_prometheus(engine_match, prometheus_token_file, prometheus_ca_file)
    if html is not None:
        from cliffwatch.report.html import Extras, render

        write_text(html, render(reader, judged, phase=chosen, extras=Extras(other, deployment, cached)))
    if as_json:
        from cliffwatch.report.json import render as render_json

        typer.echo(render_json(judged))
    else:
        show(judged)
    raise typer.Exit(exit_code(judged, strict=strict))


def show(judged: Report) -> None:
    """Print the report's tables to standard output."""
    from cliffwatch.report.table import render

    console().print(render(judged))


def exit_code(judged: Report, *, strict: bool = False) -> ExitCode:
    """The exit code that a judged run has: an INVALID run is neither met nor missed.

    A run in which every request failed is a miss even where nothing was promised: a gate must not pass on it.
    """
    if judged.invalid:
        return ExitCode.RUN_INVALID
    status = judged.judgement.status if judged.judgement else Status.MET
    nothing_served = judged.n > 0 and all(one.outcome is not Outcome.OK for one in judged.outcomes)
    failed = status is Status.MISSED or nothing_served or (strict and status is Status.TOO_FEW_DATA)
    return ExitCode.SLO_MISSED if failed else ExitCode.OK


def _refuse_without_prometheus(match: list[str], token_file: Path | None, ca_file: Path | None) -> None:
    options = {"--engine-match": match, "--prometheus-token-file": token_file, "--prometheus-ca-file": ca_file}
    for name in [name for name, given in options.items() if given]:
        raise InputError(f"is missing: {name} needs it", field="--prometheus", allowed="the address of a Prometheus")


def _refuse_own_files(html: Path, run_dir: Path) -> None:
    """A report must not replace what it is made from."""
    own = {run_dir.resolve() / name for name in (FILE_NAME, WORKLOAD_FILE, SLO_FILE)}
    target = html.resolve()
    if target in own or target.is_relative_to(shards_dir(run_dir).resolve()):
        raise InputError("is a file of the run itself", field="--html", value=str(html), allowed="another file")
