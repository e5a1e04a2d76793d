"""`cliffwatch run`: a Locust master in this process, local workers beside it, one run, its judgement."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import locust  # noqa: F401  before our own modules: it makes blocking calls cooperative
import typer

from cliffwatch.errors import ExitCode, InputError
from loadgen.calibration.command import say
from loadgen.calibration.measure import MOST_STREAMS, calibrate, reach, streams_of
from loadgen.closing import recover_run
from loadgen.conducting import ConductedRun, place_of
from loadgen.ending import print_report
from loadgen.identity import SecretFiles
from loadgen.joining import join, patience
from loadgen.link import INSECURE_HELP, check_bind
from loadgen.link_key import KEY_HELP, LinkKey, read_key
from loadgen.metrics.exposure import Exposure
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
from loadgen.preparation import Preparation, prepare
from loadgen.resuming import Resumed, load, preparation_of, roster_of
from loadgen.room import open_loop_note
from loadgen.settings import OPTIONS, Settings, linger_of
from loadgen.signals import leaving_at_once, say_interrupted

app = typer.Typer(add_completion=False)


@app.command()
def run(
    workload: str = typer.Argument("", help=help_of("workload")),
    target: str = typer.Option("", help=help_of("target")),
    out: str = typer.Option("", help=help_of("out")),
    slo: str = typer.Option("", help=help_of("slo")),
    workers: int = typer.Option(1, min=0, max=256, help="Worker processes to start on this machine."),
    expect: int = typer.Option(0, min=0, max=4096, help="Workers on other machines to wait for."),
    bind: str = typer.Option("127.0.0.1", help="HOST[:PORT] where workers join; beyond this machine with a key only."),
    master: str = typer.Option("", help="HOST[:PORT] of a run to join with our workers, instead of starting one."),
    link_key_file: str = typer.Option("", "--link-key-file", metavar="FILE", help=KEY_HELP),
    insecure_link: bool = typer.Option(False, "--insecure-link", help=INSECURE_HELP),
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
    duration: str = typer.Option("", help=help_of("duration")),
    rate: str = typer.Option("", help=help_of("rate")),
    drain: str = typer.Option("", help=help_of("drain")),
    metrics: str = typer.Option("", metavar="[HOST:]PORT", help=help_of("metrics")),
    metrics_linger: str = typer.Option("", "--metrics-linger", help=help_of("metrics-linger")),
    worker_metrics: str = typer.Option(
        "", "--worker-metrics", metavar="[HOST:]PORT", help="The same of each worker here, at PORT, PORT + 1 and so on."
    ),
    on_worker_loss: str = typer.Option("", metavar=OPTIONS["on-worker-loss"][0], help=help_of("on-worker-loss")),
    replica_header: str = typer.Option("", "--replica-header", metavar="NAME", help=help_of("replica-header")),
    replicas: str = typer.Option("", metavar=OPTIONS["replicas"][0], help=help_of("replicas")),
    calibrated: bool = typer.Option(
        False,
        "--calibrate",
        help=f"Measure this host's own bias first (under 10 s), at {MOST_STREAMS} streams at most.",
    ),
    recover: str = typer.Option(
        "", metavar="DIR", help="Close a run that was killed or met a full disk; sends nothing."
    ),
    resume: str = typer.Option(
        "", metavar="DIR", help="Go on with a run whose master died: with the workers it left, and with new ones."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the judged run as JSON."),
    no_report: bool = typer.Option(False, "--no-report", help="Print no table at the end."),
) -> None:
    """Send a workload to an inference server, record every request, judge the run.

    Ctrl-C ends a run early: requests in flight get the drain time, then everything recorded is kept, marked partial.
    A second Ctrl-C ends the drain.
    """
    given = {
        "workload": workload, "target": target, "out": out, "slo": slo, "model": model, "endpoint": endpoint,
        "tokenizer": tokenizer, "ca_file": ca_file, "insecure": insecure or None, "duration": duration, "rate": rate,
        "drain": drain, "metrics": metrics, "metrics_linger": metrics_linger, "on_worker_loss": on_worker_loss,
        "replica_header": replica_header, "replicas": replicas,
    }  # fmt: skip
    secret_files = {
        "token_file": token_file, "basic_auth_file": basic_auth_file, "headers_file": headers_file,
        "client_cert": client_cert, "client_key": client_key,
    }  # fmt: skip
    try:
        if recover:
            recover_run(Path(recover))
            raise typer.Exit(print_report(Path(recover), as_json=as_json, report=not no_report))
        key = read_key(Path(link_key_file) if link_key_file else None)
        if master:
            surplus = [name for name, value in given.items() if value]
            raise typer.Exit(join(master, workers, surplus, SecretFiles.of(secret_files), key, worker_metrics))
        place = place_of(workers, expect, bind)
        check_bind(place[0], key, insecure=insecure_link, option="--bind")
        if resume:
            going_on = _resume(Path(resume), given, SecretFiles.of(secret_files), (workers, place, key), worker_metrics)
            raise typer.Exit(going_on.code(as_json=as_json, report=not no_report))
        settings = Settings.of({**given, **secret_files})
        exposure = Exposure(settings.metrics, settings.metrics_linger_s, worker_metrics, workers, place)
        preparation = _prepared(settings, workers, expect, calibrated=calibrated)
        code = ConductedRun(preparation, workers, expect, place, key, exposure).code(
            as_json=as_json, report=not no_report
        )
    except KeyboardInterrupt:  # where no handler of our own was in place
        say_interrupted()
        code = ExitCode.INTERRUPTED
    raise typer.Exit(code)


def _prepared(settings: Settings, workers: int, expect: int, *, calibrated: bool) -> Preparation:
    """A run that may begin, with what is to be known of it said. Raises as `prepare` does."""
    with (
        patience(f"asking {settings.target} how it serves and counts tokens ..."),
        leaving_at_once("before the run began"),
    ):
        preparation = prepare(settings)
        if (note := open_loop_note(preparation.workload, workers)) is not None and not expect:
            preparation = replace(preparation, notes=(*preparation.notes, note))
        if calibrated:
            found = calibrate(streams_of(preparation.workload, workers + expect), say)
            preparation = replace(preparation, calibration=found, notes=(*preparation.notes, *reach(found)))
    for note in preparation.notes:
        print(f"cliffwatch: {note}", file=sys.stderr)  # noqa: T201
    return preparation


def _resume(
    run_dir: Path,
    given: dict[str, Any],
    secrets: SecretFiles,
    joining: tuple[int, tuple[str, int], LinkKey | None],
    worker_metrics: str,
) -> ConductedRun:
    """A run to go on with; `joining` are new workers, where others join, and the key of the link.

    Raises RunError where it cannot be gone on with, InputError for options that were settled before.
    """
    workers, place, key = joining
    choice = str(given.pop("on_worker_loss") or "")
    shown = given.pop("metrics") or None
    linger_s = linger_of(given.pop("metrics_linger"))
    for name, value in given.items():
        if value:
            raise InputError("was settled when the run began", field=name, value="with --resume")
    manifest, progress = load(run_dir)
    preparation = preparation_of(run_dir, manifest, progress, secrets, choice, shown)
    resumed = Resumed(roster_of(progress), manifest.t0_unix_ns)
    return ConductedRun(
        preparation, workers, 0, place, key, Exposure(shown, linger_s, worker_metrics, workers, place), resumed
    )
