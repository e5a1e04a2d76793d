"""Local worker processes: started in our own session, ended by their pids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cliffwatch.cli.processes import die_with_parent, end
from cliffwatch.errors import UnreachableError
from loadgen.identity import SECRET_FILE_VARIABLES, SecretFiles
from loadgen.link_key import FILE_VARIABLE, KEY_VARIABLE, LinkKey

LOCUSTFILE = Path(__file__).with_name("locustfile.py")


class LocalWorkers:
    """`count` Locust workers on this machine, joined to a master.

    Each of them shows its live metrics at one of the addresses `metrics`, where there are any.
    """

    def __init__(
        self,
        count: int,
        host: str,
        port: int,
        secrets: SecretFiles | None = None,
        key: LinkKey | None = None,
        metrics: Sequence[str] = (),
        *,
        heard: bool = False,
    ) -> None:
        """`heard`: what they say goes to our standard error, instead of being kept for `last_words`."""
        command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--worker", "--loglevel", "WARNING"]
        command += ["--master-host", host, "--master-port", str(port)]
        command += [] if secrets is None else secrets.arguments("--cliffwatch-")
        ours = {KEY_VARIABLE, FILE_VARIABLE, *SECRET_FILE_VARIABLES}  # to be told, or left out, as we were
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        if key is not None:
            environment[KEY_VARIABLE] = key.text  # read by nobody but this user; a command line is read by all
        self._log: Any = tempfile.TemporaryFile()  # noqa: SIM115  as long as the workers live
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for number in range(count):
            shown = ["--cliffwatch-metrics", metrics[number]] if metrics else []
            process = subprocess.Popen(
                [*command, *shown],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr if heard else self._log,
                stderr=sys.stderr if heard else self._log,
                preexec_fn=_become_worker,
                env=environment,
            )
            self._running[process.pid] = process

    def ended(self) -> list[int]:
        """Pids of the workers that have ended since the last call."""
        gone = [pid for pid, process in self._running.items() if process.poll() is not None]
        for pid in gone:
            del self._running[pid]
        return gone

    def check_started(self) -> None:
        """Raises UnreachableError, with the last thing it said, when a worker has ended already."""
        if self.ended():
            raise UnreachableError(f"a worker did not start: {self.last_words() or 'it said nothing'}")

    def last_words(self) -> str:
        """The last line that any worker wrote."""
        self._log.seek(0)
        lines = self._log.read()[-4096:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def wait(self) -> None:
        """Until all have ended."""
        for process in list(self._running.values()):
            process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send all of them a signal."""
        for process in self._running.values():
            process.send_signal(number)

    def kill(self, pids: set[int]) -> None:
        """End those of `pids` that are ours, at once: workers that are dead or do not answer."""
        for pid in pids & self._running.keys():
            self._running[pid].kill()
            self._running[pid].wait()

    def close(self, grace_s: float = 5.0) -> None:
        """End all of them."""
        for process in self._running.values():
            end(process, grace_s=grace_s)
        self._log.close()


def _become_worker() -> None:
    """In the child: end with the parent, and leave Ctrl-C to it, since the master tells workers when to stop."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
