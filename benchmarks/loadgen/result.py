"""A figure, its bar, and how both are shown and kept."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.loadgen.page import RESULTS

Peers = dict[str, dict[str, float | int | None]]


@dataclass(frozen=True)
class Figure:
    """One measured number; `bar` is None for one that has none. `n` is what it rests on."""

    name: str
    value: float
    unit: str
    n: int
    bar: float | None = None
    wanted: Literal["at most", "at least"] = "at most"
    note: str = ""

    @property
    def reached(self) -> bool | None:
        if self.bar is None:
            return None
        return bool(self.value <= self.bar if self.wanted == "at most" else self.value >= self.bar)

    def __str__(self) -> str:
        bar = "" if self.bar is None else f"   {self.wanted} {self.bar:g}: {'reached' if self.reached else 'MISSED'}"
        note = f"   ({self.note})" if self.note else ""
        return f"{self.name:44s} {self.value:12,.3f} {self.unit:10s} n {self.n:<10,d}{bar}{note}"


@dataclass
class Row:
    """One row of the table: what was asked, our figures, and the same of the floor and the peers in the same round."""

    name: str
    settings: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    peers: Peers = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        return all(figure.reached is not False for figure in self.figures)

    def show(self) -> None:
        print(f"\n== {self.name}   {' '.join(f'{key}={value}' for key, value in self.settings.items())}")
        for figure in self.figures:
            print(f"  {figure}")
        for peer, said in self.peers.items():
            print(
                f"  {peer}: " + ", ".join(f"{key} {'–' if v is None else format(v, ',.4g')}" for key, v in said.items())
            )

    def save(self) -> None:
        figures = [asdict(figure) | {"reached": figure.reached} for figure in self.figures]
        kept = {"name": self.name, "settings": self.settings, "figures": figures, "same_round": self.peers}
        kept |= {"reached": self.reached, "machine": machine(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}
        (RESULTS / f"loadgen_{self.name}.json").write_text(json.dumps(kept, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """What a reader needs to judge the figures by."""
    model = [
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "cores": os.cpu_count(),
        "processor": model[0] if model else platform.processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
    }
