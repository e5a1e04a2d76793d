"""Between probes: wait until the server has nothing left of the last one.

A server driven over the edge still works on its queue when the probe is over, and would show it to the next one. So
single small requests are sent until they are answered as fast as before the first probe.
"""

from __future__ import annotations

import statistics
import time
from urllib.parse import quote

from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.records.schema import Outcome
from cliffwatch.stream import DIALECTS
from cliffwatch.workload.spec import Workload
from loadgen.capacity.stopping import Stopping
from loadgen.probe import Probe
from loadgen.tokenizing import endpoints

BASELINE_ASKS = 5
IDLE_WITHIN_S = 120.0
BACK_WITHIN_S = 20.0  # a server that restarts in mid-search may come back; one that stays away ends it
_IN_A_ROW = 2
_FACTOR, _SLACK_S = 2.0, 0.02
_PAUSE_S = 0.2
_NOT_NOW = {Outcome.HTTP_429, Outcome.HTTP_5XX, Outcome.CONNECT, Outcome.TRUNCATED}


class IdleCheck:
    """Knows how fast the server answers one token when it has nothing else to do."""

    def __init__(self, probe: Probe, model: str, workload: Workload, stopping: Stopping) -> None:
        """Asks the server a few times. Raises InputError or UnreachableError where it gives no answer."""
        self._probe, self._stopping = probe, stopping
        self._dialect = DIALECTS[endpoints(workload)[0]]
        self._path = self._dialect.path.replace("{model}", quote(model, safe=""))
        self._body = self._dialect.encode(model=model, prompts=["idle"], max_tokens=1, sampling={})
        self.baseline_s = statistics.median(self._ask_s() for _ in range(BASELINE_ASKS))

    def wait(self) -> str | None:
        """Until the server is idle; what to note where it does not become so in time.

        Raises:
            UnreachableError: it does not answer any more.
            Interrupted: the search is to end.
        """
        started_s, quick = time.monotonic(), 0
        silent_since_s: float | None = None
        while quick < _IN_A_ROW:
            self._stopping.check()
            try:
                took_s, silent_since_s = self._ask_s(), None
                quick = quick + 1 if took_s <= _FACTOR * self.baseline_s + _SLACK_S else 0
            except UnreachableError:
                silent_since_s = silent_since_s or time.monotonic()
                if time.monotonic() - silent_since_s > BACK_WITHIN_S:
                    raise
            if time.monotonic() - started_s > IDLE_WITHIN_S:
                return f"the server did not come to rest within {IDLE_WITHIN_S:g} s; this probe begins with its queue"
            if not quick:
                self._stopping.sleep(_PAUSE_S)
        return None

    def check_alive(self) -> None:
        """After a probe: whether it was a server that it measured. Raises UnreachableError, Interrupted."""
        deadline_s = time.monotonic() + BACK_WITHIN_S
        while True:
            try:
                self._ask_s()
            except UnreachableError:
                if time.monotonic() > deadline_s:
                    raise
                self._stopping.sleep(_PAUSE_S)
            else:
                return

    def _ask_s(self) -> float:
        """Seconds until one request of one token is answered."""
        started_s = time.monotonic()
        result = self._probe.generate(self._dialect, self._path, self._body)
        if result.outcome is not Outcome.OK:
            url, said = self._probe.origin.url(self._path), result.error or result.outcome
            if result.outcome in _NOT_NOW or result.outcome.startswith("timeout"):
                raise UnreachableError(f"the server is not ready: {said}", file=url)
            raise InputError(f"a request of one token is not answered: {said}", file=url)
        return time.monotonic() - started_s
