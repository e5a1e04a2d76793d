"""A span of the past from Prometheus: range queries in pieces, placed into arrays as they arrive."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cliffwatch.cli.prometheus import SIDE_BY_SIDE, Prometheus
from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.slo.backtest.history import Grid, History, Rates, What, pieces, questions
from cliffwatch.slo.live.asks import Answer, ranged, read_answer
from cliffwatch.slo.live.queries import Group
from cliffwatch.slo.prometheus.events import Events
from cliffwatch.slo.prometheus.record import BASE_S

POINTS = 11_000  # that Prometheus answers a range query with, at most
LEAST_POINTS = 100
MAX_CELLS = 60_000_000  # of all arrays: half a gigabyte
SAY_AFTER_S = 2.0
# In the words of Prometheus: with fewer instants a question, the same server can answer.
_TOO_MUCH = ("with too much", "too many samples", "query timed out", "maximum resolution", "too many points")


class _Piece(NamedTuple):
    key: tuple[What, int]
    promql: str
    start_s: float
    end_s: float


@dataclass(slots=True)
class _Gathered:
    """Rates by group, and what the server warned of; several threads write."""

    grid: Grid
    keys: tuple[tuple[What, int], ...]
    groups: dict[Group, Rates] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: tuple[What, int], answer: Answer) -> None:
        with self.lock:
            self.warnings.update(dict.fromkeys(answer.warnings))
            for series in answer.series:
                group = tuple(sorted(series.labels.items()))
                rates = self.groups.get(group) or self._room(group)
                self.grid.place(rates[key], series, self.grid.offset(key[1]))

    def _room(self, group: Group) -> Rates:
        sizes = {key: self.grid.size - self.grid.offset(key[1]) for key in self.keys}
        if (len(self.groups) + 1) * sum(sizes.values()) > MAX_CELLS:
            allowed = "a longer --every, a shorter span, or fewer values of watch.group_by"
            message = f"are more than fit: {len(self.groups) + 1} groups of {self.grid.size:,} instants"
            raise InputError(message, field="--from, --to, --every", allowed=allowed)
        rates = self.groups[group] = {key: np.full(size, np.nan) for key, size in sizes.items()}
        return rates


@dataclass(frozen=True, slots=True)
class Fetched:
    """What Prometheus holds of an objective, by group (none: it has no data), and what it warned of."""

    histories: Mapping[Group, History]
    warnings: tuple[str, ...]


def fetch_history(server: Prometheus, events: Events, windows: set[int], grid: Grid, *, what: str) -> Fetched:
    """The rates of an objective over the grid; `what` names it in progress.

    Raises:
        UnreachableError: Prometheus does not answer, or refuses even the shortest range.
        InputError: the answer is too large for memory.
    """
    asked = questions(events, windows)
    gathered = _Gathered(grid, tuple(asked))
    todo = deque(
        _Piece(key, promql, start_s, end_s)
        for key, promql in asked.items()
        for start_s, end_s in pieces(grid, key[1], POINTS)
    )
    _work(server, gathered, todo, _Progress(what, len(todo)))
    histories = {
        group: History(grid, rates, max(BASE_S, events.raw_up_to_s)) for group, rates in sorted(gathered.groups.items())
    }
    return Fetched(histories, tuple(gathered.warnings))


def _work(server: Prometheus, gathered: _Gathered, todo: deque[_Piece], progress: _Progress) -> None:
    """Ask for every piece, a few side by side; one that is too much for the server is halved."""
    running: dict[Future[None], _Piece] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        while todo or running:
            while todo and len(running) < SIDE_BY_SIDE:
                piece = todo.popleft()
                running[pool.submit(_ask, server, gathered, piece)] = piece
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                piece = running.pop(future)
                try:
                    future.result()
                    progress.one_more()
                except UnreachableError as error:
                    todo.extendleft(_halves(piece, gathered.grid.step_s, error))
                    progress.total += 1


def _ask(server: Prometheus, gathered: _Gathered, piece: _Piece) -> None:
    question = ranged(piece.promql, start_s=piece.start_s, end_s=piece.end_s, step_s=gathered.grid.step_s)
    gathered.add(piece.key, read_answer(server.ask(question)))


def _halves(piece: _Piece, step_s: float, error: UnreachableError) -> list[_Piece]:
    """The piece in two. Raises the error where its reason is another, or the piece is short already."""
    steps = round((piece.end_s - piece.start_s) / step_s)
    if steps < LEAST_POINTS or not any(words in error.message for words in _TOO_MUCH):
        raise error
    middle_s = piece.start_s + steps // 2 * step_s
    return [piece._replace(end_s=middle_s), piece._replace(start_s=middle_s + step_s)]


class _Progress:
    """How many pieces have arrived, on standard error, once the wait is longer than `SAY_AFTER_S`."""

    def __init__(self, what: str, total: int) -> None:
        self.total = total
        self._what = what
        self._done = 0
        self._said_s = time.monotonic()

    def one_more(self) -> None:
        self._done += 1
        now_s = time.monotonic()
        if now_s - self._said_s >= SAY_AFTER_S:
            self._said_s = now_s
            print(f"{self._what}: {self._done} of {self.total} pieces of history", file=sys.stderr)  # noqa: T201
