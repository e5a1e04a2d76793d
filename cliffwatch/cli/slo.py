"""`cliffwatch slo`: SLO files checked, started, compiled to Prometheus rules, and how they stand now."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from cliffwatch.cli.files import write_new
from cliffwatch.cli.prometheus_options import CA_FILE, TOKEN_FILE
from cliffwatch.cli.slo_backtest import backtest
from cliffwatch.cli.slo_exchange import export_slo, import_slo, put
from cliffwatch.cli.slo_proof import prove_slo
from cliffwatch.errors import InputError
from cliffwatch.report.words import target
from cliffwatch.slo.prometheus.forms import FORMS
from cliffwatch.slo.prometheus.rules import compile_rules, watch_of
from cliffwatch.slo.schema import FILE_NAME, HINT, slo_schema
from cliffwatch.slo.spec import load_slo, presets, slo_text

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Check, create, compile and watch SLO files.")


@app.command()
def check(file: str = typer.Argument(..., metavar="FILE", help="An SLO file or the name of a preset.")) -> None:
    """Say what an SLO file promises, or what is wrong in it (exit code 2)."""
    slo = load_slo(file)
    typer.echo(f"{slo.name}: {len(slo.objectives)} objective{'' if len(slo.objectives) == 1 else 's'}, well formed")
    for one in slo.objectives:
        of = f"requests, decided from {one.needed:,} at the latest" if one.on_runs else one.counted
        typer.echo(f"  {one.label}: {target(one.target)} of {of}{'' if one.on_runs else ', on Prometheus only'}")
    if slo.cost:
        typer.echo(f"  cost: {slo.cost.gpus:g} GPU at {slo.cost.gpu_hour_usd:g} USD an hour")


@app.command()
def init(
    path: Path = typer.Argument(..., metavar="PATH", help="The file to write; it must not exist yet."),
    preset: str = typer.Option("chat", help="The preset to start from."),
) -> None:
    """Write a preset to a new file, to be changed to what you promise."""
    if preset not in presets():
        raise InputError("no such preset", field="--preset", value=preset, allowed=", ".join(presets()))
    write_new(path, HINT + slo_text(presets()[preset]))
    typer.echo(f"wrote {path}; check it with: cliffwatch slo check {path}")
    typer.echo(f"an editor knows its keys after: cliffwatch slo schema > {path.parent / FILE_NAME}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of SLO files: editors complete and check keys by it."""
    typer.echo(json.dumps(slo_schema(), indent=2))


@app.command(name="compile")
def compile_slo(
    file: str = typer.Argument(..., metavar="FILE", help="An SLO file with a section `watch`, or a preset's name."),
    out: str = typer.Option("", metavar="PATH", help="Write here; else to standard output."),
    form: str = typer.Option("prometheus", "--format", help=f"One of {', '.join(FORMS)}."),
) -> None:
    """Make Prometheus rules: records, budget left, burn-rate alerts, alerts on engines that say nothing.

    Or what stands around them: the scrape configuration, a ServiceMonitor, Alertmanager's routes and inhibition.

    Refuses (exit code 2) what rules could not tell exactly, with what to do instead.
    """
    if form not in FORMS:
        raise InputError("is no form of rules", field="--format", value=form, allowed=", ".join(FORMS))
    slo = load_slo(file)
    compiled = compile_rules(slo, source=file)
    text = FORMS[form].text(slo.name, watch_of(slo, source=file), compiled)
    for note in compiled.notes if FORMS[form].of_rules else ():
        typer.echo(f"note: {note}", err=True)
    put(text, out)
    if not out:
        return
    rules = sum(len(group["rules"]) for group in compiled.groups)
    typer.echo(f"wrote {out}" + (f": {rules} rules, {compiled.series}" if FORMS[form].of_rules else ""))


@app.command()
def status(
    files: list[Path] = typer.Argument(
        ..., metavar="FILE|DIR...", help="SLO files with a section `watch`, or folders of them."
    ),
    prometheus: str = typer.Option(..., metavar="URL", help="The Prometheus server that watches the engines."),
    prometheus_token_file: Path | None = TOKEN_FILE,
    prometheus_ca_file: Path | None = CA_FILE,
    timeout: float = typer.Option(10.0, min=0.1, max=120.0, help="Seconds that one question may take."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
    watch: bool = typer.Option(False, help="Show it again every 10 s until Ctrl-C."),
) -> None:
    """Say how every objective stands now: budget left, burn rates, what fires, how long the budget lasts.

    Exit code 1 where a page fires, 4 where Prometheus cannot be asked.
    """
    from cliffwatch.cli import slo_status
    from cliffwatch.cli.prometheus import prometheus as server_at
    from cliffwatch.slo.live.watched import load_watched, slo_files

    if watch and as_json:
        raise InputError("do not go together", field="--watch, --json", allowed="one of them")
    watched = load_watched(slo_files(files))
    server = server_at(prometheus, prometheus_token_file, ca_file=prometheus_ca_file, timeout_s=timeout)
    if watch:
        slo_status.watch(watched, server)
    raise typer.Exit(slo_status.show(watched, server, as_json=as_json))


app.command(name="test")(prove_slo)
app.command(name="export")(export_slo)
app.command(name="import")(import_slo)
app.command(name="backtest")(backtest)


@app.command(name="presets")
def list_presets() -> None:
    """List the SLO files that come with cliffwatch."""
    for name in presets():
        slo = load_slo(presets()[name])
        typer.echo(f"{name}: {slo.description}")
        for one in slo.objectives:
            typer.echo(f"  {one.label}: {target(one.target)}")
