"""Workers lent to a run that another machine conducts."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import gevent
import gevent.socket

from cliffwatch.errors import ExitCode, InputError, UnreachableError
from loadgen.addresses import split_address
from loadgen.identity import SecretFiles
from loadgen.link import try_key
from loadgen.link_key import LinkKey
from loadgen.metrics.exposure import worker_addresses
from loadgen.processes import LocalWorkers
from loadgen.signals import leaving_at_once, on_ending_signals, say_interrupted

DEFAULT_MASTER_PORT = 5557
WORKERS_WITHIN_S = 120.0
_PATIENCE_S = 2.0


def join(
    master: str, workers: int, surplus: list[str], secrets: SecretFiles, key: LinkKey | None, worker_metrics: str
) -> ExitCode:
    """Lend workers to a run that another machine conducts, until it ends or we are interrupted."""
    if surplus:
        allowed = "--workers, --worker-metrics, --link-key-file, and who they are (--token-file, --client-cert, ...)"
        raise InputError("is the master's to say", field=surplus[0], value="with --master", allowed=allowed)
    host, port = split_address(master, "--master", default_port=DEFAULT_MASTER_PORT)
    waiting = f"waiting for a run to join at {host}:{port}"
    with patience(f"{waiting} ..."), leaving_at_once(f"while {waiting}"):
        _await_master(host, port)
        try_key(host, port, key)
    exposed = worker_addresses(worker_metrics, workers)
    lent = LocalWorkers(workers, host, port, secrets, key, exposed, heard=True)
    signals: list[str] = []

    def leave(name: str) -> None:
        signals.append(name)
        how = "ending them now" if len(signals) > 1 else "they end what is in flight; once more ends them now"
        say_interrupted(f"({name}) while workers were lent: {how}")
        lent.signal(signal.SIGKILL if len(signals) > 1 else signal.SIGTERM)

    with on_ending_signals(leave):
        try:
            lent.wait()
        finally:
            lent.close(grace_s=60.0)
    return ExitCode.INTERRUPTED if signals else ExitCode.OK


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


@contextmanager
def patience(text: str) -> Iterator[None]:
    """Say `text` when what follows takes longer than a person waits without a word."""
    timer = gevent.spawn_later(_PATIENCE_S, print, f"cliffwatch: {text}", file=sys.stderr)
    try:
        yield
    finally:
        timer.kill()
