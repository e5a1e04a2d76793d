"""A worker's journal: what it knows that is not yet in a Parquet part, written line by line as it happens.

Lines are JSON. The first is the header, an object with the worker's identity; `[id, intended_ns]` says a request was
issued; any other object is the row of one that ended. Each is handed to the kernel in one write at once, so `kill -9`
loses nothing that was reported here; a line without its line feed was torn and counts as not written.

A living writer holds an advisory lock on its journal. The kernel drops it when the process dies, however it dies, so
the lock tells a slow worker from a dead one.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cliffwatch.errors import RunError
from cliffwatch.records.schema import RequestRow


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First line of a journal. `in_parts` rows had left the journal for Parquet parts when it was begun."""

    journal: int = 1
    shard: int
    pid: int
    host: str
    in_parts: int = 0


@dataclass(slots=True)
class JournalContent:
    """What a journal says: requests without an end (id -> intended_ns), rows of ended ones, lines that are damaged."""

    header: Header | None = None
    open: dict[int, int] = field(default_factory=dict)
    rows: dict[int, RequestRow] = field(default_factory=dict)
    damaged: int = 0


_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_issued = msgspec.json.Decoder(tuple[int, int]).decode
_decode_row = msgspec.json.Decoder(RequestRow).decode


class Journal:
    """The writing end. Not for use by several threads at once.

    Raises:
        RunError: on construction, when the journal exists or cannot be created; on `issued`, `ended` and `restart`,
            when the disk does not take the line. The file then holds whole lines only, all those before it.
    """

    def __init__(self, path: Path, shard: int) -> None:
        self._path = path
        self._shard = shard
        self._descriptor, self._size = self._begin(path, 0, ())

    def issued(self, request_id: int, intended_ns: int) -> None:
        self._append(_encode((request_id, intended_ns)) + b"\n")

    def ended(self, row: RequestRow) -> None:
        self._append(_encode(row) + b"\n")

    def restart(self, in_parts: int, still_open: Iterable[tuple[int, int]]) -> None:
        """Begin anew, atomically, with only the requests that have no end: the rows are in parts now."""
        fresh = self._path.with_suffix(".journal.new")
        fresh.unlink(missing_ok=True)
        descriptor, size = self._begin(fresh, in_parts, still_open)
        try:
            fresh.replace(self._path)
        except OSError as error:
            os.close(descriptor)
            raise RunError(f"cannot be replaced: {error.strerror}", file=self._path) from error
        os.close(self._descriptor)
        self._descriptor, self._size = descriptor, size

    def close(self) -> None:
        os.close(self._descriptor)

    def _begin(self, path: Path, in_parts: int, still_open: Iterable[tuple[int, int]]) -> tuple[int, int]:
        header = Header(shard=self._shard, pid=os.getpid(), host=platform.node(), in_parts=in_parts)
        lines = b"".join([_encode(header) + b"\n", *(_encode(item) + b"\n" for item in still_open)])
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError as error:
            raise RunError("is taken: another worker writes this shard, or did", file=path) from error
        except OSError as error:
            raise RunError(f"cannot be created: {error.strerror}", file=path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits for no longer than somebody's look at a new journal
            write_whole(descriptor, lines)
        except OSError as error:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise RunError(f"cannot be written: {error.strerror}", file=path) from error
        return descriptor, len(lines)

    def _append(self, line: bytes) -> None:
        try:
            write_whole(self._descriptor, line)
        except OSError as error:
            os.ftruncate(self._descriptor, self._size)  # a torn line would swallow the one written after it
            raise RunError(
                f"cannot be written: {error.strerror}; everything up to here is kept", file=self._path
            ) from error
        self._size += len(line)


def write_whole(descriptor: int, data: bytes) -> None:
    """`os.write` until all is written. Raises OSError."""
    done = os.write(descriptor, data)
    while done < len(data):  # a nearly full disk takes a piece, and refuses the rest with the next call
        done += os.write(descriptor, data[done:])


def read_journal(path: Path) -> JournalContent:
    """Read a journal, whole or torn; a missing one is empty.

    A damaged line is counted and skipped: its request stays open, so it is reported as lost rather than forgotten.

    Raises:
        RunError: the file cannot be read.
    """
    content = JournalContent()
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream):
                if line.endswith(b"\n"):
                    _take(content, number, line)
    except FileNotFoundError:
        return content
    except OSError as error:
        raise RunError(f"cannot be read: {error.strerror}", file=path) from error
    for request_id in content.rows:
        content.open.pop(request_id, None)
    return content


def _take(content: JournalContent, number: int, line: bytes) -> None:
    try:
        if number == 0:
            content.header = _decode_header(line)
        elif line.startswith(b"["):
            request_id, intended_ns = _decode_issued(line)
            content.open[request_id] = intended_ns
        else:
            row = _decode_row(line)
            content.rows[row.request_id] = row
    except (msgspec.DecodeError, UnicodeDecodeError):  # ValidationError is a DecodeError
        content.damaged += 1


def is_written(path: Path) -> bool:
    """Whether a living process holds the journal. A missing journal is held by nobody. Raises RunError."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise RunError(f"cannot be read: {error.strerror}", file=path) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may look at the same time
            looked_at = os.fstat(descriptor).st_ino
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        try:
            if path.stat().st_ino == looked_at:  # else the writer replaced it while we looked: look again
                return False
        except FileNotFoundError:
            return False


def take_over(path: Path) -> None:
    """Put a copy in a journal's place, which its writer does not hold: for one that stands still and may not write on.

    Whatever it still writes goes nowhere. A missing journal stays missing. Raises RunError.
    """
    fresh = path.with_suffix(".journal.new")
    try:
        fresh.write_bytes(path.read_bytes())
        fresh.replace(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"cannot be taken over: {error.strerror}", file=path) from error
