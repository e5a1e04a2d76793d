"""A worker's pen: every request goes to the journal at once, and from there, a batch at a time, to Parquet."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, journal_path, part_path
from cliffwatch.records.fold import clear_shard, fold_shard
from cliffwatch.records.journal import Journal
from cliffwatch.records.parquet import write_part
from cliffwatch.records.schema import RequestRow

# A page that watches the run wants parts often; a day-long run wants few files. So parts come at a twentieth of the
# time that has passed, within these bounds; and before so many rows are held that memory, or the time to write them,
# would grow with the rate.
_INTERVAL_SHARE = 0.05
_INTERVAL_MAX_S = 30.0
_PART_ROWS = 16_384


class ShardWriter:
    """Writes one shard of a run. For one thread (or one gevent hub); no call yields.

    Raises:
        RunError: on construction, when the shard is taken or the folder cannot be written; on any other call, when the
            disk refuses (full, gone). Everything reported before is on the disk then, and the writer may be used on:
            a row that the journal did not take is kept in memory for the next part.
    """

    def __init__(
        self,
        run_dir: Path,
        shard: int,
        *,
        part_interval_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if final_path(run_dir, shard).exists():
            raise RunError("is taken: this shard is already written", file=final_path(run_dir, shard))
        self._run_dir = run_dir
        self._shard = shard
        self._interval_s = part_interval_s
        self._clock = clock
        self._started_s = self._rolled_s = clock()
        self._open: dict[int, int] = {}
        self._rows: list[RequestRow] = []
        self._enough = _PART_ROWS
        self._in_parts = 0
        self._parts = 0
        self._closed = False
        self._journal = Journal(journal_path(run_dir, shard), shard)

    @property
    def in_flight(self) -> int:
        """Requests that were issued and have no end yet."""
        return len(self._open)

    def issued(self, request_id: int, intended_ns: int) -> None:
        """Say that a request is about to be sent. Call it before the first byte leaves, or a death hides it."""
        self._journal.issued(request_id, intended_ns)
        self._open[request_id] = intended_ns

    def ended(self, row: RequestRow) -> None:
        """Say how a request ended, once each. One that was never `issued` (a late one) may end too."""
        self._open.pop(row.request_id, None)
        self._rows.append(row)
        self._journal.ended(row)
        self.roll_if_due()

    def roll_if_due(self) -> None:
        """Move rows to a new part when it is time to. `ended` does so too; call it where requests end seldom."""
        now_s = self._clock()
        share_s = _INTERVAL_SHARE * (now_s - self._started_s)
        due = now_s - self._rolled_s >= max(self._interval_s, min(share_s, _INTERVAL_MAX_S))
        if due or len(self._rows) >= self._enough:
            self._rolled_s = now_s
            self._enough += _PART_ROWS  # a disk that refuses is not asked again for every row
            self._roll()
            self._enough = _PART_ROWS

    def close(self) -> None:
        """Fold everything into `worker-NNN.parquet`. Requests still open stay in the journal, for `close_run` to count.

        Safe to call again after an error (a disk that was full), and after success (nothing happens).
        """
        if self._closed:
            return
        self._roll()
        fold = fold_shard(self._run_dir, self._shard)
        self._journal.close()
        self._closed = True
        clear_shard(self._run_dir, self._shard, journal=not fold.open)

    def _roll(self) -> None:
        """Rows to a part, then a journal without them. A crash between the two leaves rows in both: folding knows."""
        if not self._rows:
            return
        write_part(part_path(self._run_dir, self._shard, self._parts), self._rows)
        self._parts += 1
        self._in_parts += len(self._rows)
        self._rows = []
        self._journal.restart(self._in_parts, self._open.items())
