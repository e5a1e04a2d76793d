"""Lines of a text file of any size, one at a time and bounded: plain or gzip, with or without a BOM."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from cliffwatch.errors import InputError
from cliffwatch.workload.traces.rows import Repairs, refuse

MAX_LINE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def text_lines(path: Path, repairs: Repairs) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and texts without their ends.

    Raises:
        InputError: the file cannot be read, is not UTF-8, is cut off inside its compression, or has a line over 1 MiB.
    """
    try:
        with _open(path) as stream:
            number = 0
            while data := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    data = _without_bom(data, path, repairs)
                yield number, _text(data, path, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"is damaged gzip: {error}", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def csv_records(path: Path, repairs: Repairs) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields of each row, the header first; rows of another width than the header are refused."""
    numbered = text_lines(path, repairs)
    first = next(((line, text) for line, text in numbered if text.strip()), None)
    if first is None:
        return
    delimiter = max(",;\t", key=first[1].count)
    at = first[0]

    def texts() -> Iterator[str]:
        nonlocal at
        yield first[1]
        for number, text in numbered:
            at = number
            yield text

    width = 0
    try:
        for fields in csv.reader(texts(), delimiter=delimiter, strict=True):
            if not fields or fields == [""]:
                continue
            width = width or len(fields)
            if len(fields) != width:
                raise refuse(path, at, f"has {len(fields)} fields", allowed=f"{width}, as the header has")
            yield at, fields
    except csv.Error as error:
        raise refuse(path, at, f"is not CSV: {error}") from error


def json_records(path: Path, repairs: Repairs) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Line numbers and objects of a file with one JSON object a line."""
    decode = msgspec.json.Decoder().decode
    for line, text in text_lines(path, repairs):
        if not text or text.isspace():
            continue
        try:
            record = decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise refuse(path, line, f"is not JSON: {error}", value=text) from error
        if not isinstance(record, dict):
            raise refuse(path, line, "is not a JSON object", value=text)
        yield line, record


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as stream:
        compressed = stream.read(2) == b"\x1f\x8b"
    return cast("BinaryIO", gzip.open(path, "rb")) if compressed else path.open("rb")


def _without_bom(data: bytes, path: Path, repairs: Repairs) -> bytes:
    if data.startswith(_UTF16):
        raise InputError("is UTF-16", file=path, field="line 1", allowed="UTF-8")
    if data.startswith(_BOM):
        repairs.note("the file began with a byte order mark")
    return data.removeprefix(_BOM)


def _text(data: bytes, path: Path, line: int) -> str:
    if len(data) > MAX_LINE_BYTES:
        raise refuse(path, line, "is too long", allowed=f"{MAX_LINE_BYTES} bytes at most")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise refuse(path, line, f"is not UTF-8 (byte {error.start})", allowed="UTF-8") from error
