"""What the reference server really did, from its own logs."""

from __future__ import annotations

import csv
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Request:
    """One request as served: instants in ns of CLOCK_MONOTONIC, the clock that clients of this host use too."""

    seq: int
    tokens: int
    read_ns: int
    first_ns: int
    last_ns: int
    done_ns: int

    @property
    def ttft_ms(self) -> float:
        return (self.first_ns - self.read_ns) / 1e6

    @property
    def itl_ms(self) -> float:
        return (self.last_ns - self.first_ns) / 1e6 / (self.tokens - 1)


@dataclass(frozen=True)
class ServerLog:
    """Requests by X-Request-Id (probes and the floor send none), and gaps between writes by `seq` where logged."""

    requests: dict[str, Request]
    gaps_ms: dict[int, Numbers]

    @classmethod
    def read(cls, folder: Path) -> ServerLog:
        requests = {}
        with (folder / "requests.csv").open() as stream:
            for row in csv.DictReader(stream):
                if row["x_request_id"] and row["status"] == "ok":
                    names = ("seq", "tokens", "read_ns", "first_ns", "last_ns", "done_ns")
                    requests[row["x_request_id"]] = Request(*(int(row[name]) for name in names))
        return cls(requests, _gaps(folder / "chunks.bin"))

    def of(self, prefix: str) -> dict[str, Request]:
        """The requests of one client."""
        return {key: request for key, request in self.requests.items() if key.startswith(prefix)}


def window_ns(requests: dict[str, Request]) -> tuple[int, int]:
    """From the first request read to the last answer written."""
    return min(r.read_ns for r in requests.values()), max(r.done_ns for r in requests.values())


def most_in_flight(requests: dict[str, Request]) -> int:
    """The largest number of requests that the server had open at once."""
    steps = sorted([(r.read_ns, 1) for r in requests.values()] + [(r.done_ns, -1) for r in requests.values()])
    return int(np.cumsum([step for _, step in steps]).max())


def _gaps(path: Path) -> dict[int, Numbers]:
    """Records of the chunk log: u64 seq, u32 steps, u32 choices, then the u64 ns of each step."""
    gaps: dict[int, Numbers] = {}
    data, at = path.read_bytes() if path.exists() else b"", 0
    while at + 16 <= len(data):
        seq, steps, _ = struct.unpack_from("<QII", data, at)
        gaps[seq] = np.diff(np.frombuffer(data, "<u8", steps, at + 16).astype(np.int64)) / 1e6
        at += 16 + 8 * steps
    return gaps
