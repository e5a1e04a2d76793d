"""A shard's way to the run's folder from a worker that does not see it: over the link, piece by piece, at the end.

One piece is under way at a time, and each answer says how much has arrived: a piece that is lost is sent again, one
that comes twice changes nothing, and neither side holds more than a piece.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import gevent.event

from cliffwatch.errors import RunError
from cliffwatch.records.files import final_path, shards_dir
from loadgen import messages

PIECE_BYTES = 256 * 1024
ANSWER_WITHIN_S = 5.0
_ATTEMPTS = 6
_ARRIVING = ".arriving"


class Shipper:
    """The worker's end, for one shard."""

    def __init__(self, path: Path, run_id: str, shard: int, send: Callable[[messages.Piece], None]) -> None:
        self._path = path
        self._run_id, self._shard = run_id, shard
        self._send = send
        self._answered = gevent.event.Event()
        self._arrived = 0

    def on_arrived(self, arrived: messages.Arrived) -> None:
        """What the master said."""
        if (arrived.run_id, arrived.shard) == (self._run_id, self._shard):
            self._arrived = arrived.bytes
            self._answered.set()

    def ship(self) -> None:
        """Until the whole shard has arrived. Raises RunError where the master does not take it, or it is not there."""
        try:
            with self._path.open("rb") as file:
                total = os.fstat(file.fileno()).st_size
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                attempts = 0
                while self._arrived < total or not attempts:
                    before = self._arrived
                    self._send_piece(file.fileno(), total, digest)
                    attempts = 1 if self._arrived > before else attempts + 1
                    if attempts > _ATTEMPTS:
                        raise RunError(f"was not taken by the master: {before} of {total} bytes were", file=self._path)
        except OSError as error:
            raise RunError(f"cannot be read: {error.strerror}", file=self._path) from error

    def _send_piece(self, descriptor: int, total: int, digest: str) -> None:
        data = os.pread(descriptor, PIECE_BYTES, self._arrived)
        self._answered.clear()
        self._send(
            messages.Piece(
                run_id=self._run_id, shard=self._shard, offset=self._arrived, total=total, sha256=digest, data=data
            )
        )
        self._answered.wait(ANSWER_WITHIN_S)


def receive(run_dir: Path, piece: messages.Piece) -> messages.Arrived | None:
    """The master's end: write a piece where it belongs; the shard appears when it is whole.

    None for a piece that cannot be of a shard, or that the disk does not take: it will come again.
    """
    final = final_path(run_dir, piece.shard)
    fresh = final.with_name(final.name + _ARRIVING)
    if not 0 <= piece.offset <= piece.total or len(piece.data) > PIECE_BYTES:
        return None
    try:
        if final.exists():
            return _arrived(piece, piece.total)
        size = fresh.stat().st_size if fresh.exists() else 0
        if piece.offset == size:
            with fresh.open("ab") as file:
                file.write(piece.data)
            size += len(piece.data)
        if size >= piece.total:
            with fresh.open("rb") as file:
                whole = hashlib.file_digest(file, "sha256").hexdigest() == piece.sha256
            if not whole:
                fresh.unlink()
                return _arrived(piece, 0)
            fresh.replace(final)
        return _arrived(piece, size)
    except OSError:
        return None


def discard_unfinished(run_dir: Path) -> None:
    """Remove what had arrived of shards whose workers died on the way: a run that is closed has no use for it."""
    for path in shards_dir(run_dir).glob(f"*{_ARRIVING}"):
        path.unlink(missing_ok=True)


def _arrived(piece: messages.Piece, size: int) -> messages.Arrived:
    return messages.Arrived(run_id=piece.run_id, shard=piece.shard, bytes=size)
