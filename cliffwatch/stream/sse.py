"""Server-sent events from stamped reads: incremental, independent of where the bytes were cut, bounded.

Follows the event stream format of the WHATWG HTML standard (lines end in LF, CRLF or CR; comments and unknown fields
are ignored; one leading byte order mark is dropped), with two allowances that real servers need:

* a field named `error` (llama.cpp before it moved errors into `data:`) is an event of type `error`;
* what stands unterminated at a clean end is still an event, see `SseParser.close`.
"""

from __future__ import annotations

import msgspec

from cliffwatch.errors import CliffwatchError

MAX_LINE_BYTES = 16 << 20
MAX_STRAY_BYTES = 4096

_BOM = b"\xef\xbb\xbf"
_SILENT_FIELDS = (b"id", b"retry")


class StreamLimitError(CliffwatchError):
    """A line or an event of the stream is longer than the parser may hold."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event.

    Attributes:
        stamp_ns: the stamp of the read that completed the event's last data line.
        data: its data lines, joined by LF.
        event: its type; empty when the server named none.
    """

    stamp_ns: int
    data: bytes
    event: str = ""


class SseParser:
    """Turns `(stamp, bytes)` reads into events.

    Attributes:
        stray: the start (4 KiB at most) of lines that are no field of an event stream, such as HTML.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_head",
        "_held",
        "_held_bytes",
        "_limit",
        "_size",
        "_stamp_ns",
        "_type",
        "stray",
    )

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._limit = max_line_bytes
        self._head: bytes | None = b""  # bytes that may be a byte order mark; None once that is settled
        self._after_cr = False  # the last read ended in CR: an LF that follows belongs to it
        self._held: list[bytes] = []  # an unterminated line, in pieces so that tiny reads stay linear
        self._held_bytes = 0
        self._data: list[bytes] = []  # data lines of the event in the making
        self._size = 0
        self._stamp_ns = 0
        self._type = b""
        self.stray = b""

    def feed(self, stamp_ns: int, data: bytes) -> list[Event]:
        """Events that `data`, read at `stamp_ns`, completed.

        Raises:
            StreamLimitError: a line, or the data of one event, exceeds the limit (16 MiB unless told otherwise).
        """
        if self._is_one_event(data):
            return [Event(stamp_ns, data[6:-2])]
        data = self._with_plain_line_ends(data)
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._held:
            self._held.append(lines[0])
            lines[0] = b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
            self._check(self._held_bytes)
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data: "):
                self._add(stamp_ns, line[6:])
            elif line:
                self._field(stamp_ns, line)
            elif self._data:
                events.append(self._event())
            else:
                self._type = b""
        return events

    def close(self, stamp_ns: int) -> list[Event]:
        """The event that a clean end leaves unterminated, if any; a missing blank line or line end is forgiven.

        Raises:
            StreamLimitError: as `feed`.
        """
        events = self.feed(stamp_ns, b"\n" if self._held else b"")
        if self._data:
            events.append(self._event())
        return events

    def _is_one_event(self, data: bytes) -> bool:
        """Whether a read is one event of one line and nothing else is under way: what most servers' reads are."""
        return (
            data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
            and len(data) - 8 <= self._limit
            and not (self._held or self._data or self._type or self._after_cr)
            and self._head is None
        )

    def _with_plain_line_ends(self, data: bytes) -> bytes:
        """`data` without a leading byte order mark, its lines ending in LF."""
        if self._head is not None:
            data = self._without_bom(data)
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _without_bom(self, data: bytes) -> bytes:
        head = (self._head or b"") + data
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._head = head
            return b""
        self._head = None
        return head.removeprefix(_BOM)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise StreamLimitError(
                "a line of the stream is too long", value=f"over {size} bytes", allowed=f"at most {self._limit} bytes"
            )

    def _add(self, stamp_ns: int, value: bytes) -> None:
        self._size += len(value) + 1
        self._check(self._size - 1)
        self._data.append(value)
        self._stamp_ns = stamp_ns

    def _event(self) -> Event:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        name = self._type.decode("utf-8", "replace") if self._type else ""
        self._data.clear()
        self._size = 0
        self._type = b""
        return Event(self._stamp_ns, data, name)

    def _field(self, stamp_ns: int, line: bytes) -> None:
        """A line other than the common `data: value`."""
        self._check(len(line))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(stamp_ns, value)
        elif name == b"event":
            self._type = value
        elif name == b"error":
            self._type = name
            self._add(stamp_ns, value)
        elif name and name not in _SILENT_FIELDS and len(self.stray) < MAX_STRAY_BYTES:
            self.stray += line[: MAX_STRAY_BYTES - len(self.stray)] + b"\n"
