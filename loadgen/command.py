"""`cliffwatch run`: a Locust master in this process, local workers beside it, one run, its judgement."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import gevent.socket
import locust  # noqa: F401  before our own modules: it makes blocking calls cooperative
import typer
from locust.env import Environment
from locust.exception import RPCError
from zmq.error import ZMQError

from cliffwatch.errors import CliffwatchError, ExitCode, InputError, UnreachableError
from loadgen.addresses import check_free, split_address
from loadgen.calibration.command import say
from loadgen.calibration.measure import calibrate, streams_of
from loadgen.closing import recover_run
from loadgen.coordinator import Coordinator
from loadgen.ending import INTERRUPTED, conclude, print_report
from loadgen.identity import SecretFiles
from loadgen.link import INSECURE_HELP, check_bind, try_key, use_key
from loadgen.link_key import KEY_HELP, LinkKey, new_key, read_key
from loadgen.metrics.exposure import Exposure, worker_addresses
from loadgen.plugin import IdleUser, Master
from loadgen.preparation import Preparation, prepare
from loadgen.processes import LocalWorkers
from loadgen.progress import follow
from loadgen.resuming import Resumed, load, preparation_of, roster_of
from loadgen.room import open_loop_note
from loadgen.settings import OPTIONS, Settings

DEFAULT_MASTER_PORT = 5557
WORKERS_WITHIN_S = 120.0
_PATIENCE_S = 2.0
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: a terminal that was closed
_EVERY_INTERFACE = {"*", "0.0.0.0", "::"}  # noqa: S104  compared, not bound

app = typer.Typer(add_completion=False)


def _help(name: str) -> str:
    return OPTIONS[name][1]


@app.command()
def run(
    workload: str = typer.Argument("", help=_help("workload")),
    target: str = typer.Option("", help=_help("target")),
    out: str = typer.Option("", help=_help("out")),
    slo: str = typer.Option("", help=_help("slo")),
    workers: int = typer.Option(1, min=0, max=256, help="Worker processes to start on this machine."),
    expect: int = typer.Option(0, min=0, max=4096, help="Workers on other machines to wait for."),
    bind: str = typer.Option("127.0.0.1", help="HOST[:PORT] where workers join; beyond this machine with a key only."),
    master: str = typer.Option("", help="HOST[:PORT] of a run to join with our workers, instead of starting one."),
    link_key_file: str = typer.Option("", "--link-key-file", metavar="FILE", help=KEY_HELP),
    insecure_link: bool = typer.Option(False, "--insecure-link", help=INSECURE_HELP),
    model: str = typer.Option("", help=_help("model")),
    endpoint: str = typer.Option("", help=_help("endpoint")),
    tokenizer: str = typer.Option("", help=_help("tokenizer")),
    ca_file: str = typer.Option("", "--ca-file", help=_help("ca-file")),
    insecure: bool = typer.Option(False, "--insecure", help="Do not verify the target's TLS certificate."),
    token_file: str = typer.Option("", "--token-file", help=_help("token-file")),
    basic_auth_file: str = typer.Option("", "--basic-auth-file", help=_help("basic-auth-file")),
    headers_file: str = typer.Option("", "--headers-file", help=_help("headers-file")),
    client_cert: str = typer.Option("", "--client-cert", help=_help("client-cert")),
    client_key: str = typer.Option("", "--client-key", help=_help("client-key")),
    duration: str = typer.Option("", help=_help("duration")),
    rate: str = typer.Option("", help=_help("rate")),
    drain: str = typer.Option("", help=_help("drain")),
    metrics: str = typer.Option("", metavar="[HOST:]PORT", help=_help("metrics")),
    metrics_linger: str = typer.Option("", "--metrics-linger", help=_help("metrics-linger")),
    worker_metrics: str = typer.Option(
        "", "--worker-metrics", metavar="[HOST:]PORT", help="The same of each worker here, at PORT, PORT + 1 and so on."
    ),
    on_worker_loss: str = typer.Option("", metavar=OPTIONS["on-worker-loss"][0], help=_help("on-worker-loss")),
    calibrated: bool = typer.Option(False, "--calibrate", help="Measure this host's own bias first (under 10 s)."),
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
            _join(master, workers, surplus, SecretFiles.of(secret_files), key, worker_metrics)
            return
        place = _place(workers, expect, bind)
        check_bind(place[0], key, insecure=insecure_link, option="--bind")
        if resume:
            going_on = _resume(Path(resume), given, SecretFiles.of(secret_files), (workers, place, key))
            raise typer.Exit(going_on.code(as_json=as_json, report=not no_report))
        settings = Settings.of({**given, **secret_files})
        exposure = Exposure(settings.metrics, settings.metrics_linger_s, worker_metrics, workers)
        with _patience(f"asking {settings.target} how it serves and counts tokens ..."), _leaving_at_once():
            preparation = prepare(settings)
            if (note := open_loop_note(preparation.workload, workers)) is not None and not expect:
                preparation = replace(preparation, notes=(*preparation.notes, note))
            if calibrated:
                found = calibrate(streams_of(preparation.workload, workers + expect), say)
                preparation = replace(preparation, calibration=found)
        for note in preparation.notes:
            print(f"cliffwatch: {note}", file=sys.stderr)  # noqa: T201
        code = _Run(preparation, workers, expect, place, key, exposure).code(as_json=as_json, report=not no_report)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    raise typer.Exit(code)


@contextmanager
def _patience(text: str) -> Iterator[None]:
    """Say `text` when what follows takes longer than a person waits without a word."""
    timer = gevent.spawn_later(_PATIENCE_S, print, f"cliffwatch: {text}", file=sys.stderr)
    try:
        yield
    finally:
        timer.kill()


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """While nothing has begun there is nothing to close: a signal ends us there and then, in whatever greenlet."""

    def leave() -> None:
        print("cliffwatch: interrupted before the run began", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(ExitCode.INTERRUPTED)

    watchers = [gevent.signal_handler(number, leave) for number in _ENDING_SIGNALS]
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.cancel()


class _Run:
    """One run conducted from this process."""

    def __init__(
        self,
        preparation: Preparation,
        workers: int,
        expect: int,
        place: tuple[str, int],
        key: LinkKey | None,
        exposure: Exposure,
        resumed: Resumed | None = None,
    ) -> None:
        host, port = place
        if key is None and not expect:
            key = new_key()  # others on this machine shall not join either
        self._preparation = preparation
        self._wanted = 0 if resumed else workers + expect  # a run that goes on waits for nobody
        self._environment = Environment(user_classes=[IdleUser])
        use_key(key)
        self._runner = _listen(self._environment, host, port)
        port = self._runner.server.port
        if expect:
            print(f"cliffwatch: waiting for {expect} workers at {host}:{port}", file=sys.stderr)  # noqa: T201
        near = "127.0.0.1" if host in _EVERY_INTERFACE else host
        self._workers = LocalWorkers(workers, near, port, preparation.settings.secrets, key, exposure.workers)
        self._over = gevent.event.Event()
        self._interrupted: str | None = None
        self._master = Master(self._environment, lambda: preparation, self._on_done, self._workers.kill, resumed)
        self._exposure = exposure
        exposure.show(lambda: self._master.coordinator)

    def code(self, *, as_json: bool, report: bool) -> ExitCode:
        for number in _ENDING_SIGNALS:
            gevent.signal_handler(number, self._on_signal, signal.Signals(number).name)
        try:
            self._await_workers()
            if self._interrupted is not None:
                return ExitCode.INTERRUPTED
            self._master.begin()  # not Locust's own start: its users, and what it says of them, have no part in this
            coordinator = self._conduct()
            if coordinator.error is not None:
                raise coordinator.error
            code = conclude(coordinator, as_json=as_json, report=report)
            self._exposure.linger()
        finally:
            self._exposure.close()
            self._runner.quit()
            self._workers.close()
        return code

    def _await_workers(self) -> None:
        deadline_s = time.monotonic() + WORKERS_WITHIN_S
        while len(self._runner.clients.ready) < self._wanted and self._interrupted is None:
            self._workers.check_started()
            if time.monotonic() > deadline_s:
                found = len(self._runner.clients.ready)
                raise UnreachableError(f"only {found} of {self._wanted} workers joined in {WORKERS_WITHIN_S:g} s")
            gevent.sleep(0.05)

    def _conduct(self) -> Coordinator:
        while self._master.coordinator is None:
            gevent.sleep(0.01)
        coordinator = self._master.coordinator
        if self._interrupted is not None:
            coordinator.interrupt(self._interrupted)
        watch = gevent.spawn(self._watch_processes, coordinator)
        follow(coordinator)
        self._over.wait()
        watch.kill()
        return coordinator

    def _watch_processes(self, coordinator: Coordinator) -> None:
        while True:
            for pid in self._workers.ended():
                coordinator.on_process_ended(pid)
            gevent.sleep(0.2)

    def _on_done(self, _coordinator: Coordinator | None, _error: CliffwatchError | None) -> None:
        self._over.set()

    def _on_signal(self, name: str) -> None:
        self._exposure.release()
        self._interrupted = f"{INTERRUPTED} ({name})"
        coordinator = self._master.coordinator
        if coordinator is not None and not coordinator.wait(0):
            drain_s = self._preparation.settings.drain_s
            first = coordinator.stop_reason is None
            how = f"requests in flight have {drain_s:g} s; once more ends them now" if first else "ending them now"
            print(f"\ncliffwatch: {name}: {how}", file=sys.stderr)  # noqa: T201
            coordinator.interrupt(self._interrupted)


def _resume(
    run_dir: Path,
    given: dict[str, Any],
    secrets: SecretFiles,
    joining: tuple[int, tuple[str, int], LinkKey | None],
) -> _Run:
    """A run to go on with; `joining` are new workers, where others join, and the key of the link.

    Raises RunError where it cannot be gone on with, InputError for options that were settled before.
    """
    workers, place, key = joining
    choice = str(given.pop("on_worker_loss") or "")
    for name, value in given.items():
        if value:
            raise InputError("was settled when the run began", field=name, value="with --resume")
    manifest, progress = load(run_dir)
    preparation = preparation_of(run_dir, manifest, progress, secrets, choice)
    resumed = Resumed(roster_of(progress), manifest.t0_unix_ns)
    return _Run(preparation, workers, 0, place, key, Exposure(None, 0.0, "", workers), resumed)


def _place(workers: int, expect: int, bind: str) -> tuple[str, int]:
    """Where workers are to join, found out before the target is asked anything. Raises InputError."""
    if not workers + expect:
        raise InputError("leaves nobody to send", field="--workers", allowed="1 or more, or --expect N")
    host, port = split_address(bind, "--bind", default_port=DEFAULT_MASTER_PORT if expect else 0)
    check_free(host, port, "--bind")
    return host, port


def _listen(environment: Environment, host: str, port: int) -> Any:
    """A master runner that listens for workers. Raises InputError where the address cannot be had."""
    try:
        return environment.create_master_runner(host, port)
    except (SystemExit, RPCError, ZMQError) as error:  # Locust leaves the process when the port is taken
        raise InputError(
            "cannot be listened on", field="--bind", value=f"{host}:{port}", allowed="a free address"
        ) from error


def _await_master(host: str, port: int) -> None:
    """Until a master listens there. Raises UnreachableError when none does within `WORKERS_WITHIN_S`."""
    deadline_s = time.monotonic() + WORKERS_WITHIN_S
    while True:
        try:
            gevent.socket.create_connection((host, port), timeout=2.0).close()
        except OSError as error:
            if time.monotonic() > deadline_s:
                raise UnreachableError(
                    f"no run was there to join within {WORKERS_WITHIN_S:.0f} s: {error}", file=f"{host}:{port}"
                ) from error
            gevent.sleep(0.5)
        else:
            return


def _join(
    master: str, workers: int, surplus: list[str], secrets: SecretFiles, key: LinkKey | None, worker_metrics: str
) -> None:
    """Lend workers to a run that another machine conducts, until it ends."""
    if surplus:
        allowed = "--workers, --worker-metrics, --link-key-file, and who they are (--token-file, --client-cert, ...)"
        raise InputError("is the master's to say", field=surplus[0], value="with --master", allowed=allowed)
    host, port = split_address(master, "--master", default_port=DEFAULT_MASTER_PORT)
    with _patience(f"waiting for a run to join at {host}:{port} ..."):
        _await_master(host, port)
        try_key(host, port, key)
    exposed = worker_addresses(worker_metrics, workers)
    lent = LocalWorkers(workers, host, port, secrets, key, exposed, heard=True)
    try:
        lent.wait()
    finally:
        lent.close(grace_s=60.0)
