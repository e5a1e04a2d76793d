"""`cliffwatch capacity`: the options of a search, all that can be wrong with them, and what it prints."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import typer

from cliffwatch.capacity.result import FILE_NAME, Capacity, Record, one_fewer, read, write
from cliffwatch.capacity.search import Limits, State
from cliffwatch.capacity.variation import asked_for, at_rate, unit
from cliffwatch.errors import ExitCode, InputError, RunError
from cliffwatch.slo.spec import load_run_slo
from cliffwatch.units import parse_seconds, parse_share
from loadgen.access import Access
from loadgen.capacity.idle import IdleCheck
from loadgen.capacity.prober import Plan
from loadgen.capacity.searching import Search
from loadgen.capacity.stopping import Stopping
from loadgen.options import (
    BasicAuthFile,
    CaFile,
    ClientCert,
    ClientKey,
    Endpoint,
    HeadersFile,
    Insecure,
    Model,
    TokenFile,
    Tokenizer,
    help_of,
)
from loadgen.probe import Probe
from loadgen.settings import Settings
from loadgen.target import inspect_target

LOWEST_SHARE = 1 / 256  # of the workload's own rate: unless --min says otherwise, a search goes no lower
LARGEST = 1_000_000.0
FEWER_FOLDER = "one-fewer"
CODES = {
    State.TOO_HIGH: ExitCode.SLO_MISSED,
    State.GENERATOR: ExitCode.RUN_INVALID,
    State.NOTHING: ExitCode.RUN_INVALID,
}

# Options of `run` that a probe sets itself, or that would make it another run than the one that is judged.
PROBES_OWN = (
    "--target", "--out", "--slo", "--workers", "--expect", "--bind", "--master", "--duration", "--rate", "--drain",
    "--recover", "--resume", "--json", "--no-report",
)  # fmt: skip

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_extra_args": True})
def capacity(
    context: typer.Context,
    workload: str = typer.Argument(..., help=help_of("workload")),
    target: str = typer.Option(..., help=help_of("target")),
    slo: str = typer.Option(..., help="SLO file, or the name of a preset: what has to hold."),
    out: Path = typer.Option(..., metavar="DIR", help="Folder of the search, new or empty; each probe's run is in it."),
    lowest: str = typer.Option("", "--min", help="Lowest rate (or users) to try; with --max it begins between them."),
    highest: str = typer.Option("", "--max", help="Highest rate (or users) to try."),
    precision: str = typer.Option("5%", help="Width of the interval to reach, as a share of the capacity."),
    probes: int = typer.Option(10, min=2, max=100, help="Probes at most."),
    probe_duration: str = typer.Option("2m", help="How long a probe sends at most; a clear verdict ends it."),
    replicas: int = typer.Option(0, min=0, max=100_000, help="Replicas behind the target: says what one fewer can do."),
    target_fewer: str = typer.Option("", metavar="URL", help="The service with one replica fewer, to measure it."),
    workers: int = typer.Option(1, min=1, max=256, help="Worker processes of each probe."),
    model: Model = "",
    endpoint: Endpoint = "",
    tokenizer: Tokenizer = "",
    ca_file: CaFile = "",
    insecure: Insecure = False,
    token_file: TokenFile = "",
    basic_auth_file: BasicAuthFile = "",
    headers_file: HeadersFile = "",
    client_cert: ClientCert = "",
    client_key: ClientKey = "",
    resume: bool = typer.Option(False, "--resume", help="Go on with the search in --out: its finished probes count."),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Find the highest request rate (closed loop: number of users) at which an SLO file holds.

    Further options of `cliffwatch run` go after `--`. The method: docs/capacity.md.

    Exit codes: 0 found, 1 the SLO fails at the lowest rate, 2 wrong input, 3 the load generator is the limit,
    4 target unreachable, 130 interrupted (with the bracket so far).
    """
    given = {
        "workload": workload, "target": target, "out": out, "slo": slo, "model": model, "endpoint": endpoint,
        "tokenizer": tokenizer, "ca_file": ca_file, "insecure": insecure or None, "token_file": token_file,
        "basic_auth_file": basic_auth_file, "headers_file": headers_file, "client_cert": client_cert,
        "client_key": client_key,
    }  # fmt: skip
    settings = Settings.of(given)
    plan = _plan(settings, workers, probe_duration, tuple(context.args))
    limits = _limits(plan, lowest, highest, precision, probes)
    if target_fewer and replicas < 2:
        raise InputError("needs to know how many there are", field="--target-fewer", allowed="--replicas 2 or more")
    if replicas == 1:
        raise InputError("leaves none with one fewer", field="--replicas", value=1, allowed="2 or more")
    found = _search(plan, settings, limits, resume=resume)
    if replicas > 1 and found.interrupted is None:
        found = _with_fewer(found, plan, settings, limits, replicas, target_fewer, resume=resume)
    _print(found, as_json=as_json)
    interrupted = ExitCode.INTERRUPTED if found.interrupted is not None else None
    raise typer.Exit(interrupted or CODES.get(found.answer.state, ExitCode.OK))


def _plan(settings: Settings, workers: int, probe_duration: str, extra: tuple[str, ...]) -> Plan:
    for word in extra:
        if (option := word.split("=", 1)[0]) in PROBES_OWN:
            raise InputError("is set by each probe itself", field=option, allowed="other options of cliffwatch run")
    workload = settings.read_workload()
    unit(workload)
    try:
        duration_s = parse_seconds(probe_duration)
    except ValueError as error:
        raise InputError(str(error), field="--probe-duration", value=probe_duration) from error
    if not 1 <= duration_s <= 86_400:
        raise InputError("is out of range", field="--probe-duration", value=probe_duration, allowed="1s to 24h")
    at_rate(workload, asked_for(workload), duration_s=duration_s, number=1)  # whether a probe can be made of it at all
    options = ["--workers", str(workers)]
    for name, value in (
        ("--model", settings.model),
        ("--endpoint", settings.endpoint),
        ("--tokenizer", settings.tokenizer),
        ("--ca-file", settings.ca_file),
    ):
        options += [] if value is None else [name, str(value)]
    options += settings.secrets.arguments("--")
    options += ["--insecure"] if settings.insecure else []
    source = str(settings.slo)
    return Plan(workload, load_run_slo(source), source, settings.target, settings.out, duration_s, (*options, *extra))


def _limits(plan: Plan, lowest: str, highest: str, precision: str, probes: int) -> Limits:
    own, whole = asked_for(plan.workload), plan.workload.users is not None
    low = _number("--min", lowest, whole=whole) if lowest else max(1.0 if whole else 0.0, own * LOWEST_SHARE)
    high = _number("--max", highest, whole=whole) if highest else None
    if high is not None and low > high:
        raise InputError("is above --max", field="--min", value=low, allowed=f"at most {high:g}")
    try:
        share = parse_share(precision)
    except ValueError as error:
        raise InputError(str(error), field="--precision", value=precision) from error
    if not 0.001 <= share <= 0.5:
        raise InputError("is out of range", field="--precision", value=precision, allowed="0.1% to 50%")
    first = math.sqrt(low * high) if lowest and high is not None else min(max(low, own), high or math.inf)
    return Limits(
        lowest=low,
        highest=high,
        first=float(round(first)) if whole else first,
        targets=plan.targets,
        precision=share,
        max_probes=probes,
        whole=whole,
    )


def _number(option: str, text: str, *, whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LARGEST or (whole and not value.is_integer()):
        allowed = "a whole number of users" if whole else f"requests a second above 0, at most {LARGEST:g}"
        raise InputError(
            "is out of range" if value == value else "is not a number", field=option, value=text, allowed=allowed
        )
    return value


def _search(plan: Plan, settings: Settings, limits: Limits, *, resume: bool) -> Capacity:
    """Check the folder and the target, then search. Raises CliffwatchError."""
    asked = _digest(plan)
    probes = _finished(plan.out, asked) if resume else _fresh(plan.out)
    probe = Probe(Access.of(settings.target, settings.secrets, ca_file=settings.ca_file, insecure=settings.insecure))
    stopping = Stopping()
    stopping.listen()
    try:
        model = inspect_target(probe, plan.workload).model
        idle = IdleCheck(probe, model, plan.workload, stopping)
        found = Search(plan, limits, asked, idle, stopping, probes).run()
    finally:
        probe.close()
    return found


def _digest(plan: Plan) -> str:
    """Of what the evidence of a probe depends on, but for its rate: only such probes may count in a resumed search."""
    asked = {
        "workload": plan.workload.model_dump(mode="json"),
        "slo": plan.slo.model_dump(mode="json"),
        "target": plan.target,
        "duration_s": plan.duration_s,
        "options": plan.options,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _fresh(out: Path) -> list[Record]:
    """Make the folder of a new search. Raises RunError where it is taken or cannot be made."""
    if (out / FILE_NAME).exists():
        raise RunError("already holds a capacity search", file=out, allowed="a new or empty folder, or --resume")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError("is taken", file=out, allowed="a new or empty folder as --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot be made: {error.strerror or error}", file=out) from error
    return []


def _finished(out: Path, asked: str) -> list[Record]:
    """The probes of the search that lies there. Raises RunError where there is none, InputError where it is another."""
    before = read(out)
    if before.asked != asked:
        raise InputError(
            "is a search for something else", file=out, field="--resume",
            allowed="the same workload, SLO file, target, probe duration and options as before",
        )  # fmt: skip
    return list(before.probes)


def _with_fewer(
    found: Capacity, plan: Plan, settings: Settings, limits: Limits, replicas: int, target: str, *, resume: bool
) -> Capacity:
    """With what one replica fewer can do: searched for at `target` where there is one, else by linear scaling."""
    measured = None
    if target:
        out = plan.out / FEWER_FOLDER
        first = found.answer.low or limits.first
        scaled = replace(limits, first=max(limits.lowest, float(round(first)) if limits.whole else first))
        other = replace(plan, target=target, out=out)
        second = _search(other, replace(settings, target=target, out=out), scaled, resume=resume and out.exists())
        measured, found = second.answer, found.model_copy(update={"interrupted": second.interrupted})
    fewer = one_fewer(found.answer, replicas, found.demand, measured)
    found = found.model_copy(update={"fewer": fewer})
    write(plan.out, found)
    return found


def _print(found: Capacity, *, as_json: bool) -> None:
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
        return
    from cliffwatch.capacity.table import render
    from cliffwatch.cli.console import console

    console().print(render(found))
