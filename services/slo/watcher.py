"""The SLO files that are watched on a Prometheus: one reading for all askers, kept for some seconds.

Prometheus may be slow, down or restarting: then the last reading stands with what is wrong, and the service stays up.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cliffwatch.cli.prometheus import Prometheus
from cliffwatch.errors import CliffwatchError
from cliffwatch.slo.live.alert_events import STEP_S, AlertEvent, read_series, series_ask
from cliffwatch.slo.live.asks import Ask, Reply, read_answer
from cliffwatch.slo.live.document import ReadingDocument, reading_document
from cliffwatch.slo.live.history import Grid, ObjectiveHistory, read_history
from cliffwatch.slo.live.read import read_status, unread
from cliffwatch.slo.live.watched import Watched
from services.slo.alert_log import AlertLog
from services.slo.answers import Answers
from services.slo.problems import UnknownSloError
from services.slo.shared import Shared

FRESH_S = 5.0
RENEW_S = 3.0  # from then on a reading is renewed while it is still told, so that nobody waits for the next
DEADLINE_S = 15.0  # a reading is two rounds of questions; one that takes longer goes on, and is shown when it is there
ALERTS_BACK_S = 86_400.0
MAX_KEPT_BYTES = 16 << 20

Files = Mapping[str, tuple[Watched, ...]]
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Seen:
    """A reading; `problem` says why there is no newer one, None where it is fresh; `ever`: Prometheus did answer.

    `stamp` is another for whatever differs.
    """

    document: ReadingDocument
    problem: str | None
    ever: bool
    stamp: str


@dataclass(frozen=True, slots=True)
class PastAlerts:
    """The events of the last day by Prometheus's series; `problem`: why it did not tell them."""

    events: tuple[AlertEvent, ...]
    problem: str | None


class Watcher:
    """Reads all files at once, off the event loop; askers of the same moment share one reading.

    What takes long waits in a queue of its own: the reading, the past alerts, the histories, and what is made of a
    reading, so that a Prometheus that hangs for one of them delays no other.
    """

    def __init__(self, files: Files, server: Prometheus) -> None:
        self.files = files
        self.url = server.url
        self.log = AlertLog()
        self._asker = KeptAnswers(server)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._under_way = Shared()
        self._rounds = 0
        self._seen = Seen(reading_document(unread(files), time.time()), "not asked yet", ever=False, stamp="0")
        self._asked_s = float("-inf")
        self._told = Answers(workers=1)
        self._past_alerts = Answers(workers=1)
        self._taken: PastAlerts | None = None
        self._histories = Answers()

    async def seen(self) -> Seen:
        """The newest reading: at most `FRESH_S` old, or the last one with the reason why there is no newer."""
        age_s = time.monotonic() - self._asked_s
        if age_s >= RENEW_S:
            self._under_way.start("reading", self._read)
        if age_s < FRESH_S:
            return self._seen
        try:
            return await asyncio.wait_for(self._under_way.get("reading", self._read), DEADLINE_S)
        except TimeoutError:
            problem = f"Prometheus has not answered within {DEADLINE_S:g} s"
            return Seen(self._seen.document, problem, self._seen.ever, f"{self._seen.stamp}, late")

    async def told(self, what: str, view: Callable[[Seen], Told]) -> Told:
        """`view` of the newest reading, made once for each `what`. Raises BusyError."""
        seen = await self.seen()
        return await self._told.get(what, seen.stamp, partial(view, seen))

    async def alerts(self, view: Callable[[Seen, list[AlertEvent], str | None], Told]) -> Told:
        """`view` of the newest reading, of the events (newest first) that are known, and of why Prometheus did not tell
        its own of the last day, where it did not. Raises BusyError."""
        seen = await self.seen()
        past = await self._past_alerts.get("alerts", _round(), self._read_past_alerts)
        if past is not self._taken:
            self.log.take(past.events)
            self._taken = past
        stamp = f"{seen.stamp} {self.log.version}"
        return await self._told.get("alerts", stamp, partial(view, seen, self.log.newest(), past.problem))

    async def history(
        self, name: str, span_s: float, points: int, view: Callable[[Grid, tuple[ObjectiveHistory, ...]], Told]
    ) -> Told:
        """`view` of budget and burn rates of one SLO over the last `span_s`, on whole steps, so that askers share it.

        Raises:
            UnknownSloError: no such SLO.
            BusyError: too many are waiting, or it takes too long.
            UnreachableError: Prometheus does not answer.
        """
        ones = self.known(name)
        step_s = max(1.0, float(round(span_s / points)))
        end_s = time.time() // step_s * step_s
        grid = Grid(end_s - (points - 1) * step_s, step_s, points)

        def read() -> Told:
            return view(grid, read_history(ones, grid, self._asker.ask_all))

        return await self._histories.get((name, step_s, points), f"{end_s} {_round()}", read)

    def known(self, name: str) -> tuple[Watched, ...]:
        """The objectives of an SLO. Raises UnknownSloError."""
        if name not in self.files:
            raise UnknownSloError("there is no such SLO", field="slo", value=name, allowed="a name of /v1/slos")
        return self.files[name]

    def close(self) -> None:
        """Wait for what is running; start nothing more."""
        self._pool.shutdown(cancel_futures=True)
        for answers in (self._told, self._past_alerts, self._histories):
            answers.close()

    async def _read(self) -> Seen:
        asked_unix_s = time.time()
        self._rounds += 1
        stamp = str(self._rounds)
        try:
            reading = await asyncio.get_running_loop().run_in_executor(
                self._pool, read_status, self.files, self._asker.ask_all
            )
            self._seen = Seen(reading_document(reading, asked_unix_s), None, ever=True, stamp=stamp)
        except CliffwatchError as error:
            self._seen = Seen(self._seen.document, f"Prometheus {error.message}", self._seen.ever, stamp)
        self._asked_s = time.monotonic()
        return self._seen

    def _read_past_alerts(self) -> PastAlerts:
        end_s = time.time() // STEP_S * STEP_S
        grid = Grid(end_s - ALERTS_BACK_S, STEP_S, round(ALERTS_BACK_S / STEP_S) + 1)
        (reply,) = self._asker.ask_all([series_ask(self.files, grid)])
        try:
            return PastAlerts(tuple(read_series(read_answer(reply), grid)), None)
        except CliffwatchError as error:
            return PastAlerts((), f"Prometheus {error.message}")


def _round() -> str:
    """Another text every `FRESH_S`."""
    return f"{time.monotonic() // FRESH_S:.0f}"


class KeptAnswers:
    """Asks Prometheus, and gives an answer again for as long as its question allows. Safe for several threads."""

    def __init__(self, server: Prometheus) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._kept: dict[Ask, tuple[float, bytes]] = {}  # until when, and what

    def ask_all(self, asks: Sequence[Ask]) -> list[Reply]:
        """As `Prometheus.ask_all`; errors are never kept."""
        now_s = time.monotonic()
        with self._lock:
            self._kept = {one: kept for one, kept in self._kept.items() if now_s < kept[0]}
            replies: dict[Ask, Reply] = {one: self._kept[one][1] for one in asks if one in self._kept}
        wanted = [one for one in asks if one not in replies]
        fresh = dict(zip(wanted, self._server.ask_all(wanted), strict=True))
        with self._lock:
            room = MAX_KEPT_BYTES - sum(len(reply) for _, reply in self._kept.values())
            for one, reply in fresh.items():
                if one.keep_s and isinstance(reply, bytes) and len(reply) <= room:
                    self._kept[one] = (now_s + one.keep_s, reply)
                    room -= len(reply)
        replies |= fresh
        return [replies[one] for one in asks]
