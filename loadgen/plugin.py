"""How Cliffwatch lives in Locust: the events it listens to, the same for `cliffwatch run` and plain `locust`.

Locust gives distribution, start and stop, the web page and the life of the processes. Its users are not the arrival
process: each worker has one idle user, and the schedule is kept by the dispatcher.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gevent
import gevent.event
from locust import User, task
from locust.runners import HEARTBEAT_LIVENESS, WorkerNode

from cliffwatch.errors import CliffwatchError, ExitCode
from loadgen import messages
from loadgen.clock import answer_questions
from loadgen.coordinator import CLOSE_MARGIN_S, Coordinator
from loadgen.ending import INTERRUPTED, conclude
from loadgen.identity import SecretFiles
from loadgen.metrics.run import master_text
from loadgen.metrics.server import MetricsServer, Text, metrics_address
from loadgen.metrics.worker import worker_text
from loadgen.preparation import Preparation, prepare
from loadgen.resuming import Resumed
from loadgen.settings import OPTIONS, Settings
from loadgen.worker import Worker

_LOCAL_REPORT_S = 1.0
_PREFIX = "cliffwatch_"
logger = logging.getLogger("cliffwatch")


class IdleUser(User):
    """Stands for a worker in Locust's books and does nothing."""

    @task
    def idle(self) -> None:
        gevent.event.Event().wait()


class Master:
    """A master's (or single process's) listeners: each Locust test is one run."""

    def __init__(
        self,
        environment: Any,
        make_preparation: Callable[[], Preparation],
        on_done: Callable[[Coordinator | None, CliffwatchError | None], None],
        end_processes: Callable[[set[int]], None] | None = None,
        resumed: Resumed | None = None,
    ) -> None:
        self.coordinator: Coordinator | None = None
        self._environment = environment
        self._runner = environment.runner
        self._make_preparation = make_preparation
        self._on_done = on_done
        self._end_processes = end_processes
        self._resumed = resumed
        self._idle = gevent.event.Event()
        self._idle.set()
        answer_questions(self._runner)
        self._runner.register_message(messages.READY, self._on_ready)
        self._runner.register_message(messages.CLOSED, self._on_closed)
        self._runner.register_message(messages.BEAT, self._on_beat)
        self._runner.register_message(messages.PIECE, self._on_piece)
        environment.events.worker_report.add_listener(self._on_worker_report)
        environment.events.test_start.add_listener(self._on_test_start)
        environment.events.test_stopping.add_listener(self._on_test_stopping)
        environment.events.quitting.add_listener(self._on_quitting)

    def _on_test_start(self, **_: object) -> None:
        self.begin()

    def begin(self) -> None:
        """Conduct a run from here on, in the background."""
        self._idle.clear()
        gevent.spawn(self._run)

    def _run(self) -> None:
        self.coordinator = None
        try:
            self._conduct()
        finally:
            self._idle.set()

    def _conduct(self) -> None:
        try:
            preparation = self._make_preparation()
        except CliffwatchError as error:
            self._on_done(None, error)
            return
        clients = getattr(self._runner, "clients", None)
        ids = [client.id for client in clients.all if client.state != "missing"] if clients is not None else ["local"]
        self.coordinator = Coordinator(self._runner, preparation, ids, self._end_processes, self._resumed)
        self.coordinator.conduct()
        self._on_done(self.coordinator, self.coordinator.error)

    def _on_test_stopping(self, **_: object) -> None:
        """Locust's stop button, its --run-time, or our own end of a run, which has nothing left to stop."""
        if self.coordinator is not None and not self.coordinator.wait(0):
            self._stop(self.coordinator, "stopped from Locust")
            self.coordinator.wait(self._patience_s(self.coordinator))

    def _on_quitting(self, **_: object) -> None:
        """Locust leaves, most often by a signal: it takes the exit code right after this."""
        if self.coordinator is not None:
            self._stop(self.coordinator, INTERRUPTED)
            self._idle.wait(self._patience_s(self.coordinator))

    @staticmethod
    def _stop(coordinator: Coordinator, reason: str) -> None:
        if coordinator.stop_reason is None:
            coordinator.interrupt(reason)

    @staticmethod
    def _patience_s(coordinator: Coordinator) -> float:
        return coordinator.preparation.settings.drain_s + 2 * CLOSE_MARGIN_S

    def _on_ready(self, msg: Any, **_: object) -> None:
        if self.coordinator is not None:
            self.coordinator.on_ready(msg.node_id, msg.data)

    def _on_closed(self, msg: Any, **_: object) -> None:
        if self.coordinator is not None:
            self.coordinator.on_closed(msg.node_id, msg.data)

    def _on_worker_report(self, data: dict[str, Any], **_: object) -> None:
        reports = data.get(messages.REPORT_KEY)
        if self.coordinator is not None and isinstance(reports, list):
            for report in reports:
                self.coordinator.on_report(report)

    def _on_piece(self, msg: Any, **_: object) -> None:
        arrived = None if self.coordinator is None else self.coordinator.on_piece(msg.node_id, msg.data)
        if arrived is not None:
            self._runner.send_message(messages.ARRIVED, messages.plain(arrived), client_id=msg.node_id)

    def _on_beat(self, msg: Any, **_: object) -> None:
        beat = messages.read(msg.data, messages.Beat)
        if beat is None:
            return
        if msg.node_id not in self._runner.clients:  # it outlived a break of over a minute, or another master
            self._runner.clients[msg.node_id] = WorkerNode(msg.node_id, heartbeat_liveness=HEARTBEAT_LIVENESS)
        if self.coordinator is not None:
            renewal = self.coordinator.on_beat(msg.node_id, beat)
        elif beat.shards:
            return  # of a run that we do not know yet
        else:
            renewal = messages.Renewal(run_id=beat.run_id, asked=[], held=[], sent_ns=beat.sent_ns)
        self._runner.send_message(messages.RENEWAL, messages.plain(renewal), client_id=msg.node_id)


def add_arguments(parser: Any) -> None:
    """Locust's own command line gets `--cliffwatch-NAME` (or CLIFFWATCH_NAME) for each option of a run."""
    for name, (metavar, text) in OPTIONS.items():
        variable = f"CLIFFWATCH_{name.replace('-', '_').upper()}"
        parser.add_argument(
            f"--cliffwatch-{name}", metavar=metavar, help=text, default="", env_var=variable, include_in_web_ui=False
        )
    parser.add_argument(
        "--cliffwatch-insecure",
        action="store_true",
        default=False,
        help="Do not verify the target's TLS certificate.",
        include_in_web_ui=False,
    )


def attach(environment: Any) -> None:
    """Set up this Locust process, whatever its part: worker, master, or both in one."""
    options = {
        key.removeprefix(_PREFIX): value
        for key, value in vars(environment.parsed_options).items()
        if key.startswith(_PREFIX)
    }
    # the master first: when Locust stops a single process, it must know before its worker has closed
    master = None if hasattr(environment.runner, "master_host") else _PlainMaster(environment, options)
    address: str = options.get("metrics") or ""
    exposed = bool(address) and master is None
    worker = (
        None
        if hasattr(environment.runner, "clients")
        else Worker(environment, SecretFiles.of(options), exposed=exposed)
    )
    if master is not None and worker is not None:
        gevent.spawn(master.poll, worker)
    if worker is not None and exposed:
        _expose(address, lambda: worker_text(worker.had))
    elif master is not None and address:
        master.metrics = _expose(address, lambda: master_text(master.coordinator))


def _expose(address: str, text: Text) -> MetricsServer:
    """Live metrics of this process, which ends here where their address cannot be had: nothing has begun."""
    option = f"--{_PREFIX.replace('_', '-')}metrics"
    try:
        server = MetricsServer(*metrics_address(address, option), text, option=option)
    except CliffwatchError as error:
        logger.error("cliffwatch: %s", error)  # noqa: TRY400  what a person gave: no traceback
        sys.exit(int(error.exit_code))
    logger.info("metrics at %s", server.url)
    return server


class _PlainMaster:
    """`locust -f loadgen/locustfile.py` as master or alone, headless or with its web page."""

    def __init__(self, environment: Any, options: dict[str, Any]) -> None:
        self._environment = environment
        self._options = options
        self._runs = 0
        self._master = Master(environment, self._prepare, self._on_done)
        self.metrics: MetricsServer | None = None

    @property
    def coordinator(self) -> Coordinator | None:
        """Of the newest run."""
        return self._master.coordinator

    def poll(self, worker: Worker) -> None:
        """In a single process nobody sends the worker's reports: fetch them."""
        while True:
            gevent.sleep(_LOCAL_REPORT_S)
            for report in worker.reports():
                if self._master.coordinator is not None:
                    self._master.coordinator.on_report(messages.plain(report))

    def _prepare(self) -> Preparation:
        target = self._options.get("target") or self._environment.host  # Locust's own --host, or its page's field
        settings = Settings.of({**self._options, "target": target or ""})
        self._runs += 1
        if self._runs > 1:  # started again from the web page
            settings = replace(settings, out=settings.out.with_name(f"{settings.out.name}-{self._runs}"))
        preparation = prepare(settings)
        for note in preparation.notes:
            logger.warning(note)
        return preparation

    def _on_done(self, coordinator: Coordinator | None, error: CliffwatchError | None) -> None:
        headless = self._environment.web_ui is None
        code: int = ExitCode.BAD_INPUT
        if error is not None:
            logger.error("cliffwatch: %s", error)
            code = error.exit_code
        elif coordinator is not None:
            code = conclude(coordinator)
        if headless:
            self._environment.process_exit_code = int(code)
            gevent.spawn(self._leave, 0.0 if coordinator is None else coordinator.preparation.settings.metrics_linger_s)
        else:
            self._environment.runner.stop()

    def _leave(self, linger_s: float) -> None:
        if self.metrics is not None:
            self.metrics.linger(linger_s)
        self._environment.runner.quit()
