"""ServeGen: what each client of a service asked for in each window of time, fitted rather than recorded.

A folder, or the same as .tar.gz, holds `chunk-N-trace.csv` of client N: window start (s), rate (requests/s), CV, family
of the gaps (Gamma or Weibull; empty where the client was idle) and its shape and scale, without a header; and
`chunk-N-dataset.json`: from a window's start on, shares of input and output lengths, each a text that holds a Python
dict. Requests are drawn from these, window by window and client by client from generators of their own, so that a slice
need not draw what comes before it.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
import tarfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cliffwatch.errors import InputError
from cliffwatch.workload.arrival_parts import TraceArrivals
from cliffwatch.workload.traces.rows import Repairs, TraceRow, refuse

MAX_FILE_BYTES = 64 << 20  # of one client; those published have a few megabytes
MAX_RATE = 1e5
MAX_WINDOW_REQUESTS = 20_000_000
_NAME = re.compile(r"chunk-(\d{1,9})-(trace\.csv|dataset\.json)")


@dataclass(frozen=True, slots=True)
class Family:
    """Gaps of mean 1 by their shape, and one gap drawn with a weight of its length."""

    least_shape: float
    gaps: Callable[[float, int, np.random.Generator], Any]
    longer: Callable[[float, np.random.Generator], float]


def _gamma_gaps(shape: float, count: int, rng: np.random.Generator) -> Any:
    return rng.standard_gamma(shape, count) / shape


def _weibull_gaps(shape: float, count: int, rng: np.random.Generator) -> Any:
    return rng.weibull(shape, count) / math.gamma(1 + 1 / shape)


FAMILIES = {
    "Gamma": Family(1e-3, _gamma_gaps, lambda shape, rng: rng.standard_gamma(shape + 1) / shape),
    "Weibull": Family(
        0.1,
        _weibull_gaps,  # weighted by its length, the power of `shape` of a gap is gamma of 1 + 1 / shape
        lambda shape, rng: rng.standard_gamma(1 + 1 / shape) ** (1 / shape) / math.gamma(1 + 1 / shape),
    ),
}
Shares = tuple[NDArray[np.int64], NDArray[np.float64]]  # lengths, and their cumulated shares up to 1


@dataclass(frozen=True, slots=True)
class Window:
    """One client in one window: `shape` of a family of gaps whose mean is 1 / rate."""

    start_s: float
    rate: float
    family: str
    shape: float


@dataclass(frozen=True)
class Client:
    """One client: its windows by their start, and its lengths by the start from which they hold."""

    number: int
    windows: dict[float, Window]
    lengths: dict[float, tuple[Shares, Shares]] = field(default_factory=dict)

    def lengths_at(self, start_s: float) -> tuple[Shares, Shares] | None:
        """Input and output lengths in the window; None where none are known."""
        starts = sorted(self.lengths)
        place = bisect_right(starts, start_s) - 1
        return self.lengths[starts[place]] if place >= 0 else None


@dataclass(frozen=True)
class ClientSource:
    """Requests of all clients together. `rate_scale` multiplies their rates."""

    path: Path
    spec: TraceArrivals
    block_tokens: int = 0
    draws: bool = True

    def check(self) -> None:
        """Raises InputError where there is no client, or a line cannot be used."""
        self._clients()

    def rows(self, repairs: Repairs, rng: np.random.Generator) -> Iterator[TraceRow]:
        """Requests from the window of the slice's start on; lengths are 0 where no client has any."""
        clients = self._clients()
        seed = int(rng.integers(1 << 62))
        starts = sorted({start for client in clients for start in client.windows})
        steps = np.diff(starts)
        seconds = float(steps.min()) if len(steps) else 600.0
        for start_s in starts:
            since_s = start_s - starts[0]
            if since_s + seconds > self.spec.start:
                yield from _window(clients, start_s, since_s, seconds, self.spec.rate_scale, seed, repairs)

    def _clients(self) -> list[Client]:
        files = dict(_files(self.path))
        numbers = sorted({number for number, kind in files if kind == "trace.csv"})
        if not numbers:
            raise InputError("holds no chunk-N-trace.csv", file=self.path, allowed="clients as ServeGen publishes them")
        return [
            Client(
                number,
                _windows(files[number, "trace.csv"], f"{self.path}: chunk-{number}-trace.csv"),
                _lengths(files.get((number, "dataset.json")), f"{self.path}: chunk-{number}-dataset.json"),
            )
            for number in numbers
        ]


def is_servegen(path: Path) -> bool:
    """Whether this is a folder or archive, which no other format is."""
    return path.is_dir() or path.name.endswith((".tar.gz", ".tgz"))


def _files(path: Path) -> Iterator[tuple[tuple[int, str], bytes]]:
    try:
        if path.is_dir():
            for entry in path.iterdir():
                if (found := _NAME.fullmatch(entry.name)) and entry.stat().st_size <= MAX_FILE_BYTES:
                    yield (int(found[1]), found[2]), entry.read_bytes()
            return
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                found = _NAME.fullmatch(Path(member.name).name)
                if found and member.isfile() and member.size <= MAX_FILE_BYTES:
                    content = archive.extractfile(member)
                    yield (int(found[1]), found[2]), content.read() if content else b""
    except (OSError, EOFError, tarfile.TarError) as error:
        raise InputError(f"cannot be read as ServeGen's clients: {error}", file=path) from error


def _windows(data: bytes, file: str) -> dict[float, Window]:
    windows = {}
    rows = csv.reader(io.StringIO(data.decode(errors="replace")))
    for line, row in enumerate(rows, start=1):
        try:
            start_s, rate, shape = float(row[0]), float(row[1]), float(row[4])
        except (ValueError, IndexError) as error:
            allowed = "start, rate, CV, family, shape, scale"
            raise refuse(file, line, "is no window", value=",".join(row), allowed=allowed) from error
        idle = not row[3] or rate == 0
        known = row[3] in FAMILIES and 0 < rate <= MAX_RATE and FAMILIES[row[3]].least_shape <= shape <= 1000
        if not (idle or known) or not 0 <= start_s < 1e9:
            raise refuse(
                file, line, "is no window", value=",".join(row), allowed="Gamma or Weibull, rate and shape > 0"
            )
        if not idle:
            windows[start_s] = Window(start_s, rate, row[3], shape)
    return windows


def _lengths(data: bytes | None, file: str) -> dict[float, tuple[Shares, Shares]]:
    found = {}
    try:
        for start, entry in (json.loads(data) if data else {}).items():
            both = _shares(entry["input_tokens"]), _shares(entry["output_tokens"])
            if all(len(shares[0]) for shares in both):
                found[float(start)] = both
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError) as error:
        raise InputError("holds no lengths as ServeGen writes them", file=file) from error
    return found


def _shares(text: str) -> Shares:
    entries: dict[Any, Any] = ast.literal_eval(text)
    lengths = np.array(list(entries), dtype=np.int64)
    shares = np.array(list(entries.values()), dtype=np.float64)
    shares = np.where(lengths > 0, shares, 0.0)
    if len(shares) and not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ValueError("shares")
    return lengths, np.cumsum(shares) / (shares.sum() or 1.0)


def _window(
    clients: list[Client], start_s: float, since_s: float, seconds: float, scale: float, seed: int, repairs: Repairs
) -> Iterator[TraceRow]:
    """All requests of one window in order of time; `since_s` is its start since the first window's."""
    active = [client for client in clients if start_s in client.windows]
    if sum(client.windows[start_s].rate for client in active) * scale * seconds > MAX_WINDOW_REQUESTS:
        raise InputError("has too many requests in a window", field="rate_scale", value=scale, allowed="a smaller one")
    pooled = _pooled(active, start_s)
    parts = []
    for client in active:
        rng = np.random.default_rng([seed, client.number, round(start_s)])
        times = _arrivals(client.windows[start_s], scale, seconds, rng)
        lengths = client.lengths_at(start_s) or pooled
        if lengths is pooled and pooled is not None:
            repairs.note("a client's window has no lengths: drawn from the other clients' by their rates")
        drawn = [_draw(shares, len(times), rng) for shares in lengths] if lengths else [np.zeros(len(times))] * 2
        parts.append(np.stack([np.rint((since_s + times) * 1e9), *drawn]).astype(np.int64))
    if not parts:
        return
    together = np.concatenate(parts, axis=1)
    order = np.argsort(together[0], kind="stable")
    for chunk in range(0, len(order), 4096):
        for time_ns, tokens_in, tokens_out in together[:, order[chunk : chunk + 4096]].T.tolist():
            yield TraceRow(time_ns, tokens_in, tokens_out, (), 0)


def _pooled(active: list[Client], start_s: float) -> tuple[Shares, Shares] | None:
    """Lengths of the clients that have some, weighted by their rates."""
    known = [(client.windows[start_s].rate, client.lengths_at(start_s)) for client in active]
    both = []
    for side in (0, 1):
        lengths = [lengths[side] for _, lengths in known if lengths]
        rates = [rate for rate, lengths in known if lengths]
        if not rates:
            return None
        weights = np.concatenate(
            [rate * np.diff(cum, prepend=0.0) for rate, (_, cum) in zip(rates, lengths, strict=True)]
        )
        both.append((np.concatenate([values for values, _ in lengths]), np.cumsum(weights) / weights.sum()))
    return both[0], both[1]


def _arrivals(window: Window, scale: float, seconds: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Times within the window. The gap that the window begins in began before it, so only its rest is drawn: the
    longer a gap, the likelier a moment falls in it, and the moment is anywhere in it (see `arrivals._gamma`)."""
    family = FAMILIES[window.family]
    rate = window.rate * scale
    due = np.array([family.longer(window.shape, rng) * rng.random()])
    while due[-1] <= rate * seconds:
        count = int(1.1 * (rate * seconds - due[-1])) + 64
        if len(due) + count > 2 * MAX_WINDOW_REQUESTS:
            raise InputError(
                "has too many requests in a window", field="rate_scale", value=scale, allowed="a smaller one"
            )
        due = np.concatenate([due, due[-1] + np.cumsum(family.gaps(window.shape, count, rng))])
    times: NDArray[np.float64] = due / rate
    return times[times < seconds]


def _draw(shares: Shares, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    lengths, cumulated = shares
    place = np.searchsorted(cumulated, rng.random(count) * cumulated[-1], side="right")
    drawn: NDArray[np.int64] = lengths[np.minimum(place, len(lengths) - 1)]
    return drawn
