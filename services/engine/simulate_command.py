"""`cliffwatch engine simulate`: a workload through the engine without HTTP, as a run folder."""

from __future__ import annotations

import itertools
import json
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import typer

from cliffwatch.errors import InputError
from cliffwatch.records.files import final_path
from cliffwatch.records.folder import close_run, create_run
from cliffwatch.records.manifest import Manifest, RunState, WorkerInfo
from cliffwatch.records.parquet import table_of, write_shard
from cliffwatch.records.schema import RequestRow
from cliffwatch.slo.spec import load_run_slo, slo_text
from cliffwatch.workload.recorded import manifest_fields
from cliffwatch.workload.spec import Workload, load_workload, with_changes, workload_text
from services.engine.options import EngineOptions, takes_engine_options
from services.engine.profile import DEFAULT_PROFILE, Profile, load_profile
from services.engine.simulation import Simulation

ROWS_A_TABLE = 16_384
SAYS_EVERY_S = 2.0
SIMULATED = "simulated: no request was sent; latencies are the model's, not measured"


@takes_engine_options
def simulate(
    workload: str = typer.Argument(..., metavar="WORKLOAD", help="A workload file or the name of a preset."),
    out: Path = typer.Option(..., metavar="DIR", help="The run folder to write; it must not hold a run yet."),
    profile: str = typer.Option(DEFAULT_PROFILE, help="Profile to follow: its name, or a YAML file."),
    duration: str = typer.Option("", help="Instead of the workload's: such as 24h."),
    slo: str = typer.Option("", help="An SLO file or the name of a preset, kept with the run for its report."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON for machines."),
    *,
    options: EngineOptions,
) -> None:
    """Run a workload through the engine in simulated time and keep the same records as a run does.

    Hours of traffic take seconds. Nothing is sent, so nothing of a network or an HTTP server is in the latencies;
    retries and cancellations are not simulated.
    """
    spec = _workload(workload, duration)
    followed = load_profile(profile)
    kept_slo = None
    if slo:
        load_run_slo(slo)
        kept_slo = slo_text(slo)
    simulation = Simulation(spec, followed, options)
    started_s = time.time()
    create_run(out, _manifest(spec, followed, started_s), workload_text(workload), kept_slo)
    rows = write_shard(final_path(out, 0), _tables(_telling(simulation)), {})
    worker = WorkerInfo(shard=0, state="finished", rows=rows)
    closed = close_run(out, state=RunState.COMPLETE, workers=(worker,), load_s=simulation.now_s)
    took_s = time.time() - started_s
    if as_json:
        said = {"run": str(out), "run_id": closed.run_id, "requests": rows, "tokens": simulation.tokens}
        unused = {"mean": simulation.unused.value, "n": simulation.unused.n}
        times = {"simulated_s": simulation.now_s, "took_s": round(took_s, 3)}
        typer.echo(json.dumps(said | times | {"kv_unused_share": unused}))
        return
    typer.echo(
        f"{out}: {rows:,} requests, {simulation.tokens:,} tokens in {simulation.now_s:,.1f} s of simulated time"
        f" (took {took_s:.1f} s)\n{_unused(simulation)}\nreport: cliffwatch report {out}"
    )


def _unused(simulation: Simulation) -> str:
    mean, n = simulation.unused.value, simulation.unused.n
    if mean is None:
        return "reserved cache without a token in it: not known, no request found another running"
    return f"reserved cache without a token in it: {mean:.1%} (mean of what {n:,} requests found)"


def _workload(name: str, duration: str) -> Workload:
    """Raises InputError, also for what a simulation has no answer to."""
    spec = load_workload(name)
    if duration:
        spec = with_changes(spec, duration=duration, requests=None)
    for field in ("retries", "cancellations"):
        if getattr(spec, field) is not None:
            raise InputError("is not simulated", file=name, field=field, allowed="a workload without it")
    return spec


def _manifest(spec: Workload, profile: Profile, now_s: float) -> Manifest:
    return Manifest(
        **manifest_fields(spec),
        run_id=f"{spec.name}-simulated-{int(now_s)}",
        state=RunState.RUNNING,
        created_unix_s=now_s,
        t0_unix_ns=int(now_s * 1e9),
        target=f"simulated {profile.name}",
        endpoint=spec.endpoint,
        model=profile.model,
        engine="simulated",
        prompt_method="simulated",
        versions={"cliffwatch": version("cliffwatch"), "python": platform.python_version()},
        warnings=(SIMULATED,) if profile.measured else (SIMULATED, "simulated: the profile is estimated, not measured"),
    )


def _telling(simulation: Simulation) -> Iterator[RequestRow]:
    """The rows; on a terminal, how far it is, every two seconds."""
    said_s, shown = time.monotonic(), sys.stderr.isatty()
    for number, row in enumerate(simulation.rows(), 1):
        yield row
        if shown and time.monotonic() - said_s > SAYS_EVERY_S:
            said_s = time.monotonic()
            print(f"\rsimulated {simulation.now_s:,.0f} s, {number:,} requests ", end="", file=sys.stderr, flush=True)  # noqa: T201


def _tables(rows: Iterator[RequestRow]) -> Iterator[pa.Table]:
    while held := list(itertools.islice(rows, ROWS_A_TABLE)):
        yield table_of(held)
