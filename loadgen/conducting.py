"""One run conducted from this process: its master, its local workers, signals, the end."""

from __future__ import annotations

import sys
import time
from typing import Any

import gevent
import gevent.event
from locust.env import Environment
from locust.exception import RPCError
from zmq.error import ZMQError

from cliffwatch.errors import CliffwatchError, ExitCode, InputError, UnreachableError
from loadgen.addresses import check_free, split_address
from loadgen.coordinator import Coordinator
from loadgen.ending import INTERRUPTED, conclude
from loadgen.joining import DEFAULT_MASTER_PORT, WORKERS_WITHIN_S
from loadgen.link import use_key
from loadgen.link_key import LinkKey, new_key
from loadgen.metrics.exposure import Exposure
from loadgen.plugin import IdleUser, Master
from loadgen.preparation import Preparation
from loadgen.processes import LocalWorkers
from loadgen.progress import follow
from loadgen.resuming import Resumed
from loadgen.signals import on_ending_signals, say_interrupted

_EVERY_INTERFACE = {"*", "0.0.0.0", "::"}  # noqa: S104  compared, not bound

# One host starts its workers on few cores: about a second of one core each. What is left is for machines that join.
_WORKER_STARTS_IN_S = 2.0


class ConductedRun:
    """A run from the workers that join to its judgement."""

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
        self._waiting = f"waiting for {expect} workers at {host}:{port}" if expect else None
        near = "127.0.0.1" if host in _EVERY_INTERFACE else host
        self._workers = LocalWorkers(workers, near, port, preparation.settings.secrets, key, exposure.workers)
        self._over = gevent.event.Event()
        self._interrupted: str | None = None
        self._master = Master(self._environment, lambda: preparation, self._on_done, self._workers.kill, resumed)
        self._exposure = exposure
        exposure.show(lambda: self._master.coordinator)

    def code(self, *, as_json: bool, report: bool) -> ExitCode:
        with on_ending_signals(self._on_signal):
            try:
                return self._code(as_json=as_json, report=report)
            finally:
                self._exposure.close()
                self._runner.quit()
                self._workers.close()

    def _code(self, *, as_json: bool, report: bool) -> ExitCode:
        self._await_workers()
        if self._interrupted is not None:
            say_interrupted("before the run began")
            return ExitCode.INTERRUPTED
        self._master.begin()  # not Locust's own start: its users, and what it says of them, have no part in this
        coordinator = self._conduct()
        if coordinator.error is not None:
            raise coordinator.error
        code = conclude(coordinator, as_json=as_json, report=report)
        self._exposure.linger()
        return code

    def _await_workers(self) -> None:
        if self._waiting is not None:
            print(f"cliffwatch: {self._waiting}", file=sys.stderr, flush=True)  # noqa: T201
        within_s = WORKERS_WITHIN_S + _WORKER_STARTS_IN_S * self._wanted
        deadline_s = time.monotonic() + within_s
        while len(self._runner.clients.ready) < self._wanted and self._interrupted is None:
            self._workers.check_started()
            if time.monotonic() > deadline_s:
                found = len(self._runner.clients.ready)
                raise UnreachableError(f"only {found} of {self._wanted} workers joined in {within_s:g} s")
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


def place_of(workers: int, expect: int, bind: str) -> tuple[str, int]:
    """Where workers are to join, found out before the target is asked anything. Raises InputError."""
    if not workers + expect:
        raise InputError("leaves nobody to send", field="--workers", allowed="1 or more, or --expect N")
    host, port = split_address(bind, "--bind", default_port=DEFAULT_MASTER_PORT if expect else 0)
    check_free(("--bind", host, port))
    return host, port


def _listen(environment: Environment, host: str, port: int) -> Any:
    """A master runner that listens for workers. Raises InputError where the address cannot be had."""
    try:
        return environment.create_master_runner(host, port)
    except (SystemExit, RPCError, ZMQError) as error:  # Locust leaves the process when the port is taken
        raise InputError(
            "cannot be listened on", field="--bind", value=f"{host}:{port}", allowed="a free address"
        ) from error
