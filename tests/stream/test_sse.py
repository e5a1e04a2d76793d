"""Framing: the same events for any cut, any line end; bounded; nothing but the declared error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.stream.sse import Event, SseParser, StreamLimitError


def events_of(*reads: bytes, limit: int = 1 << 20) -> list[Event]:
    """Events of the reads, stamped 1, 2, 3, ..., and of a clean end after them."""
    parser = SseParser(max_line_bytes=limit)
    found = [event for stamp, data in enumerate(reads, 1) for event in parser.feed(stamp, data)]
    return found + parser.close(len(reads) + 1)


def data_of(*reads: bytes) -> list[bytes]:
    return [event.data for event in events_of(*reads)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),  # the blank after the colon is optional
        (b"data:  a\n\n", [b" a"]),  # and only one is dropped
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data: a\ndata: b\ndata:\n\n", [b"a\nb\n"]),
        (b"data\n\n", [b""]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),  # one mark is dropped; a second is part of a strange name
        (b": comment\n:\n\ndata: a\n\n:\n\n", [b"a"]),
        (b"id: 1\nretry: 3\ndata: a\n\n", [b"a"]),
        (b"\n\n\n", []),
        (b"event: x\n\ndata: a\n\n", [b"a"]),
        (b"data: a", [b"a"]),  # unterminated at a clean end
        (b"data: a\n", [b"a"]),
        (b"data: a\r", [b"a"]),
        (b"", []),
    ],
)
def test_framing(stream: bytes, expected: list[bytes]) -> None:
    assert data_of(stream) == expected
    assert data_of(*(stream[i : i + 1] for i in range(len(stream)))) == expected


def test_event_types() -> None:
    events = events_of(b"event: error\ndata: a\n\ndata: b\n\nevent: x\n\nerror: {}\n\nevent: x\n\ndata: c\n\n")
    assert [(event.event, event.data) for event in events] == [
        ("error", b"a"),
        ("", b"b"),
        ("error", b"{}"),
        ("", b"c"),
    ]


def test_stamp_is_the_read_that_completed_the_data_line() -> None:
    assert events_of(b"data: a", b"bc\n", b"\n") == [Event(2, b"abc")]
    assert events_of(b"data: a\r", b"\n\r\n") == [Event(1, b"a")]
    assert events_of(b"data: a\n", b"data: b\n", b"\n") == [Event(2, b"a\nb")]
    assert events_of(b"data: a") == [Event(2, b"a")]


def test_lines_that_are_no_fields_are_kept_as_a_sample() -> None:
    parser = SseParser()
    parser.feed(1, b"<html>\n<p>oops</p>\n" + b"x" * 10_000 + b"\n")
    assert parser.stray.startswith(b"<html>\n<p>oops</p>\nxxx")
    assert len(parser.stray) < 5000


def test_a_line_of_300_kb_is_read_and_one_over_the_limit_refused() -> None:
    line = b"data: " + b"x" * 300_000
    assert data_of(line + b"\n\n") == [line[6:]]
    with pytest.raises(StreamLimitError, match="at most 1048576 bytes"):
        events_of(b"data: " + b"x" * (1 << 20))
    with pytest.raises(StreamLimitError):  # unterminated, in small reads
        events_of(*[b"x" * 1000] * 2000)
    with pytest.raises(StreamLimitError):  # many short lines of one event
        events_of(*[b"data: 1234567890\n" * 1000] * 200)


def test_reads_of_one_byte_are_linear() -> None:
    """A quadratic parser would copy 200 GB here."""
    parser = SseParser()
    for _ in range(600_000):
        parser.feed(1, b"x")
    assert parser.feed(2, b"\n") == []


LINE_END = st.sampled_from([b"\n", b"\r\n", b"\r"])
DATA_LINE = st.binary(max_size=20).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b""))
EVENT = st.lists(DATA_LINE, min_size=1, max_size=3)
NOISE = st.sampled_from([b": ping", b":", b"id: 7", b"retry: 100", b"event: message"])


@given(st.data())
def test_any_cut_any_line_end_any_comments(data: st.DataObject) -> None:
    """Built from known events, with comments and fields strewn in, then cut at random."""
    events = data.draw(st.lists(EVENT, max_size=5))
    end = data.draw(LINE_END)
    stream = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    for lines in events:
        for line in lines:
            stream += b"".join(noise + end for noise in data.draw(st.lists(NOISE, max_size=2)))
            stream += b"data: " + line + end
        stream += end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reads = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert data_of(*reads) == [b"\n".join(lines) for lines in events]


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_random_bytes_give_the_same_events_however_cut(reads: list[bytes]) -> None:
    whole = b"".join(reads)
    assert data_of(*reads) == data_of(whole) == data_of(*(whole[i : i + 1] for i in range(len(whole))))


def test_a_read_that_is_one_event_by_itself_still_belongs_to_what_came_before():
    assert events_of(b"data: a\n\n", b"data: b\n\n") == [Event(1, b"a"), Event(2, b"b")]
    assert events_of(b"data: a\n", b"data: b\n\n") == [Event(2, b"a\nb")]
    assert events_of(b"\n", b"data: x", b"data: y\n\n") == [Event(3, b"xdata: y")]
    assert events_of(b"\n", b"event: error\n", b"data: no\n\n") == [Event(3, b"no", "error")]
    assert events_of(b"\n", b"data: a\n\n\r", b"data: b\n\n") == [Event(2, b"a"), Event(3, b"b")]
    with pytest.raises(StreamLimitError):
        SseParser(max_line_bytes=4).feed(1, b"data: 12345\n\n")
