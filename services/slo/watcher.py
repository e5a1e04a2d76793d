"""The SLO files that are watched on a Prometheus: one reading for all askers, kept for some seconds.

Prometheus may be slow, down or restarting: then the last reading stands with what is wrong, and the service stays up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.errors import CliffwatchError
from cliffwatch.slo.live.alert_events import STEP_S, AlertEvent, read_series, series_ask
from cliffwatch.slo.live.asks import Ask, Reply, read_answer
from cliffwatch.slo.live.document import ReadingDocument, reading_document
from cliffwatch.slo.live.history import Grid, ObjectiveHistory, read_history
from cliffwatch.slo.live.read import read_status, unread
from cliffwatch.slo.live.watched import Watched
from services.slo.alert_log import AlertLog
from services.slo.problems import BusyError, UnknownSloError

FRESH_S = 5.0
DEADLINE_S = 15.0  # a reading is two rounds of questions; one that takes longer goes on, and is shown when it is there
MAX_KEPT = 512
MAX_HISTORIES = 4
ALERTS_BACK_S = 86_400.0
MAX_KEPT_BYTES = 256 << 10

Files = Mapping[str, tuple[Watched, ...]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A reading; `problem` says why there is no newer one, None where it is fresh; `ever`: Prometheus did answer."""

    document: ReadingDocument
    problem: str | None
    ever: bool


class Watcher:
    """Reads all files at once, off the event loop; askers of the same moment share one reading."""

    def __init__(self, files: Files, server: Prometheus) -> None:
        self.files = files
        self.url = server.url
        self._asker = KeptAnswers(server)
        self._pool = ThreadPoolExecutor(MAX_HISTORIES + 1, thread_name_prefix="prometheus")
        self._seen = Seen(reading_document(unread(files), time.time()), "not asked yet", ever=False)
        self._asked_s = float("-inf")
        self._under_way: asyncio.Task[Seen] | None = None
        self._histories = 0
        self.log = AlertLog()

    async def seen(self) -> Seen:
        """The newest reading: at most `FRESH_S` old, or the last one with the reason why there is no newer."""
        if time.monotonic() - self._asked_s < FRESH_S:
            return self._seen
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.create_task(self._read())
        try:
            return await asyncio.wait_for(asyncio.shield(self._under_way), DEADLINE_S)
        except TimeoutError:
            problem = f"Prometheus has not answered within {DEADLINE_S:g} s"
            return Seen(self._seen.document, problem, self._seen.ever)

    async def history(self, name: str, span_s: float, points: int) -> tuple[Grid, tuple[ObjectiveHistory, ...]]:
        """Budget and burn rates of one SLO over the last `span_s`, on whole steps, so that askers share answers.

        Raises:
            UnknownSloError: no such SLO.
            BusyError: too many are being read.
            UnreachableError: Prometheus does not answer.
        """
        ones = self.known(name)
        if self._histories >= MAX_HISTORIES:
            raise BusyError(f"{MAX_HISTORIES} histories are being read already")
        step_s = max(1.0, float(round(span_s / points)))
        end_s = time.time() // step_s * step_s
        grid = Grid(end_s - (points - 1) * step_s, step_s, points)
        self._histories += 1
        try:
            loop = asyncio.get_running_loop()
            return grid, await loop.run_in_executor(self._pool, read_history, ones, grid, self._asker.ask_all)
        finally:
            self._histories -= 1

    async def alerts(self) -> tuple[list[AlertEvent], str | None]:
        """The events of the last day, newest first, and why Prometheus did not tell its own, where it did not."""
        end_s = time.time() // STEP_S * STEP_S
        grid = Grid(end_s - ALERTS_BACK_S, STEP_S, round(ALERTS_BACK_S / STEP_S) + 1)
        loop = asyncio.get_running_loop()
        (reply,) = await loop.run_in_executor(self._pool, self._asker.ask_all, [series_ask(self.files, grid)])
        try:
            self.log.take(read_series(read_answer(reply), grid))
        except CliffwatchError as error:
            return self.log.newest(), f"Prometheus {error.message}"
        return self.log.newest(), None

    def known(self, name: str) -> tuple[Watched, ...]:
        """The objectives of an SLO. Raises UnknownSloError."""
        if name not in self.files:
            raise UnknownSloError("there is no such SLO", field="slo", value=name, allowed="a name of /v1/slos")
        return self.files[name]

    def close(self) -> None:
        """Wait for what is running; start nothing more."""
        self._pool.shutdown(cancel_futures=True)

    async def _read(self) -> Seen:
        asked_unix_s = time.time()
        try:
            reading = await asyncio.get_running_loop().run_in_executor(
                self._pool, read_status, self.files, self._asker.ask_all
            )
            self._seen = Seen(reading_document(reading, asked_unix_s), None, ever=True)
        except CliffwatchError as error:
            self._seen = Seen(self._seen.document, f"Prometheus {error.message}", self._seen.ever)
        self._asked_s = time.monotonic()
        return self._seen


class KeptAnswers:
    """Asks Prometheus, and gives an answer again for as long as its question allows. Safe for several threads."""

    def __init__(self, server: Prometheus) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._kept: OrderedDict[Ask, tuple[float, bytes]] = OrderedDict()

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """As `Prometheus.ask_all`; errors are never kept."""
        now_s = time.monotonic()
        with self._lock:
            replies: dict[Ask, Reply] = {
                one: kept[1] for one in asks if (kept := self._kept.get(one)) is not None and now_s < kept[0]
            }
        wanted = [one for one in asks if one not in replies]
        fresh = dict(zip(wanted, self._server.ask_all(wanted), strict=True))
        with self._lock:
            for one, reply in fresh.items():
                if one.keep_s and isinstance(reply, bytes) and len(reply) <= MAX_KEPT_BYTES:
                    self._kept[one] = (now_s + one.keep_s, reply)
                    self._kept.move_to_end(one)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        replies |= fresh
        return [replies[one] for one in asks]
