"""The columns that files of measurements have, by the names that tools give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cliffwatch.errors import InputError

_SCALES = {"": 1.0, "_s": 1.0, "_ms": 1e-3, "_us": 1e-6, "_ns": 1e-9}
_NUMBERS = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|REAL)$")

# Names that a column may have, the usual one first.
DURATIONS = {
    "ttft": ("ttft", "time_to_first_token"),
    "itl": ("itl_mean", "itl", "inter_token_latency", "tpot", "time_per_output_token"),
    "e2e": ("e2e", "e2e_latency", "request_latency", "latency"),
    "whole": ("request_e2e",),  # of the whole request, where a line is one of its sequences
    "lag": ("sched_lag", "send_lag"),
}
WHOLES = {
    "input_tokens": ("input_tokens", "prompt_tokens", "input_length", "isl"),
    "output_tokens": ("output_tokens", "completion_tokens", "output_length", "osl"),
    "batch": ("batch", "batch_size"),
    "chunks": ("chunks",),
    "seq": ("seq", "sequence", "prompt_index"),
    "status": ("status", "status_code"),
}
CLOCKS = ("sent_unix_s", "wall", "sent", "timestamp", "start_time")
WORDS = {
    "cache": ("cache",),
    "model": ("model",),
    "replica": ("replica",),
    "tenant": ("tenant",),
    "error": ("error",),
    "phase": ("phase",),
    "run": ("run",),
    "rep": ("rep", "repeat"),
}


Types = Mapping[str, tuple[str, str]]  # a column's name in lower case: as it is written, and its type
Found = dict[str, tuple[str, str]]  # what: its column in the file, and SQL of its value


def find_columns(types: Types, path: Path) -> Found:
    """What the file has of what is looked for. Raises InputError without input lengths, or without any latency."""
    found = _durations(types, path)
    for what, names in WHOLES.items():
        if (present := _first(names, types)) is not None:
            column = _number(present, path)
            found[what] = (column, f"{quoted(column)}::BIGINT")
    for what, names in WORDS.items():
        if (present := _first(names, types)) is not None:
            found[what] = (present[0], f"nullif({quoted(present[0])}::VARCHAR, '')")
    if (present := _first(CLOCKS, types)) is not None:
        column, of = present
        moment = f"epoch({quoted(column)})" if "TIMESTAMP" in of else f"{quoted(_number(present, path))}::DOUBLE"
        found["sent"] = (column, moment)
    if "input_tokens" not in found:
        raise InputError("has no column of input lengths", file=path, allowed=", ".join(WHOLES["input_tokens"]))
    if not {"ttft", "itl", "e2e"} & found.keys():
        allowed = ", ".join(DURATIONS[what][0] for what in ("ttft", "itl", "e2e")) + " (each also with _ms)"
        raise InputError("has no column of a latency", file=path, allowed=allowed)
    return found


def quoted(column: str) -> str:
    """A column's name in SQL."""
    return '"' + column.replace('"', '""') + '"'


def _durations(types: Types, path: Path) -> Found:
    found: Found = {}
    for what, names in DURATIONS.items():
        written = ((name + suffix, scale) for name in names for suffix, scale in _SCALES.items())
        for name, scale in written:
            if name in types:
                column = _number(types[name], path)
                found[what] = (column, f"({quoted(column)}::DOUBLE * {scale!r})")
                break
    return found


def _first(names: tuple[str, ...], types: Types) -> tuple[str, str] | None:
    return next((types[name] for name in names if name in types), None)


def _number(column: tuple[str, str], path: Path) -> str:
    name, of = column
    if not _NUMBERS.match(of):
        raise InputError(f"is not a column of numbers (read as {of})", file=path, field=name)
    return name
