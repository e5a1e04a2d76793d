"""What an engine showed while requests were served: its own gauges and counters, from a file of scrapes.

The file is its `/metrics` text again and again, each time after a line `# scraped UNIX_SECONDS`.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from cliffwatch.engines.catalog import engines
from cliffwatch.engines.exposition import plain
from cliffwatch.errors import InputError

MAX_LINE_BYTES = 1 << 16
MAX_BYTES = 1 << 30
PATTERNS = ("*.prom", "*.prom.gz")
_HEAD = "# scraped "
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)(?: \S+)?", re.ASCII)

# What is read of an engine is what its catalog calls so; beside those, names that are older, or a GPU's.
READINGS = ("waiting", "kv_usage", "preemptions", "memory_busy")
OTHER_NAMES = {"vllm:gpu_cache_usage_perc": "kv_usage", "DCGM_FI_PROF_DRAM_ACTIVE": "memory_busy"}
COUNTERS = frozenset({"preemptions"})
SHARES = frozenset({"kv_usage", "memory_busy"})
PEAKS = frozenset({"kv_usage"})  # a cache that was full once turned somebody away
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the scrapes during some requests showed; None where none of them says so.

    Attributes:
        scrapes: how many fell into the requests' time.
        waiting: requests in the engine's queue, on average over them: one alone may see those that just came.
        kv_usage: the greatest share of the KV cache in use at one of them.
        preemptions: how many from the last scrape before the requests to the first one after.
        memory_busy: the share of time that the GPU's memory was busy, on average.
    """

    scrapes: int
    waiting: float | None = None
    kv_usage: float | None = None
    preemptions: float | None = None
    memory_busy: float | None = None


@dataclass(frozen=True, slots=True)
class Scrapes:
    """Readings over time: `at_s` Unix seconds, ascending; values[reading] one a scrape, NaN where it had none."""

    at_s: Array
    values: dict[str, Array]

    def during(self, starts_s: Array, ends_s: Array) -> Seen:
        """What was seen while at least one of these requests was under way (Unix seconds)."""
        starts, ends = np.sort(starts_s), np.sort(ends_s)

        def under_way(first_s: Array, last_s: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
            """Whether a request touches each span of time: begun before its end, not over before its start."""
            touched: np.ndarray[Any, np.dtype[np.bool_]] = np.searchsorted(starts, last_s, "right") > np.searchsorted(
                ends, first_s, "left"
            )
            return touched

        inside, gaps = under_way(self.at_s, self.at_s), under_way(self.at_s[:-1], self.at_s[1:])
        found = {
            name: _grown(values, gaps)
            if name in COUNTERS
            else _over(np.max if name in PEAKS else np.mean, values[inside])
            for name, values in self.values.items()
        }
        return Seen(int(inside.sum()), **found)


def seen_by(engines: Sequence[Scrapes], starts_s: Array, ends_s: Array) -> Seen | None:
    """What several engines showed while these requests were under way: the fullest one's gauges, the sum of counters.

    None without engines.
    """
    each = [scrapes.during(starts_s, ends_s) for scrapes in engines]
    if not each:
        return None
    known = {name: [value for one in each if (value := getattr(one, name)) is not None] for name in READINGS}
    joined = {
        name: (sum(values) if name in COUNTERS else max(values)) if values else None for name, values in known.items()
    }
    return Seen(sum(one.scrapes for one in each), **joined)


def read_engines(path: Path) -> tuple[Scrapes, ...]:
    """Read a file of scrapes, or each in a folder (`*.prom`, `*.prom.gz`): one an engine.

    Raises:
        InputError: a folder without such files, or as `read_scrapes`.
    """
    if not path.is_dir():
        return (read_scrapes(path),)
    files = sorted(one for pattern in PATTERNS for one in path.glob(pattern))
    if not files:
        raise InputError("holds no file of scrapes", file=path, allowed=", ".join(PATTERNS))
    return tuple(read_scrapes(file) for file in files)


def read_scrapes(path: Path) -> Scrapes:
    """Read a file of scrapes, plain or gzip.

    Raises:
        InputError: it cannot be read, has no scrape, or a line is no Prometheus text; names file and line.
    """
    at_s: list[float] = []
    rows: list[dict[str, float]] = []
    for number, line in _lines(path):
        if line.startswith(_HEAD):
            at_s.append(_number(line.removeprefix(_HEAD), path, number))
            if not math.isfinite(at_s[-1]):
                raise InputError("is no time", file=path, field=f"line {number}", value=line, allowed="Unix seconds")
            rows.append({})
        elif line and not line.startswith("#"):
            _take(line, rows, path, number)
    if not at_s:
        raise InputError("holds no scrape", file=path, allowed=f"`{_HEAD}UNIX_SECONDS` before each text of /metrics")
    order = np.argsort(at_s, kind="stable")
    names = sorted({name for row in rows for name in row})
    values = {name: np.array([row.get(name, math.nan) for row in rows])[order] for name in names}
    return Scrapes(np.array(at_s)[order], values)


@cache
def _known() -> Mapping[str, str]:
    """The reading behind each name (see `plain`), of all engines."""
    named = {name: signal for engine in engines() for signal, name in engine.signals.items() if signal in READINGS}
    return {plain(name): reading for name, reading in (named | OTHER_NAMES).items()}


def _take(line: str, rows: list[dict[str, float]], path: Path, number: int) -> None:
    found = _SAMPLE.fullmatch(line)
    if found is None or not rows:
        raise InputError("is no line of a scrape", file=path, field=f"line {number}", value=line)
    reading = _known().get(plain(found[1]))
    value = math.nan if reading is None else _number(found[2], path, number)
    if reading is not None and math.isfinite(value):  # a gauge may be NaN: not known
        held = rows[-1].get(reading)
        # Shares of several engines are not added: the fullest one is where requests wait.
        joined = max if reading in SHARES else float.__add__
        rows[-1][reading] = value if held is None else joined(held, value)


def _number(text: str, path: Path, line: int) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError("is no number", file=path, field=f"line {line}", value=text) from error


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    left = MAX_BYTES
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            source = cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if packed else stream
            number = 0
            while data := source.readline(MAX_LINE_BYTES + 1):
                number += 1
                left -= len(data)
                if len(data) > MAX_LINE_BYTES or left < 0:
                    allowed = f"lines up to {MAX_LINE_BYTES} bytes, {MAX_BYTES} in all"
                    raise InputError("is too long", file=path, field=f"line {number}", allowed=allowed)
                yield number, data.decode(errors="replace").rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"is damaged gzip: {error}", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error


def _grown(values: Array, gaps: np.ndarray[Any, np.dtype[np.bool_]]) -> float | None:
    """The growth of a counter over some of the gaps between scrapes; a restart begins it anew."""
    steps = np.diff(values)
    steps = np.where(steps < 0, values[1:], steps)[gaps]
    known = steps[~np.isnan(steps)]
    return float(known.sum()) if known.size else None


def _over(statistic: Callable[[Array], Any], values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(statistic(known)) if known.size else None
