"""`cliffwatch run` as a person starts it, and the rows it leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cliffwatch.records.manifest import Manifest, read_manifest
from cliffwatch.records.reader import RunReader


@dataclass(frozen=True)
class Run:
    """A run that ended: its folder, exit code and output."""

    folder: Path
    code: int
    output: str

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.folder)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Result of SQL over the view `requests` (every phase)."""
        return RunReader(self.folder).fetch(sql)


def run(workload: Mapping[str, object], target: str, folder: Path, *options: str, within_s: float = 240) -> Run:
    """Run `workload` on `target` to its end."""
    file = folder / "workload.yaml"
    file.write_text(yaml.safe_dump(dict(workload)))
    out = folder / "run"
    command = [Path(sys.executable).with_name("cliffwatch"), "run", file, "--target", target, "--out", out, *options]
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=within_s,
        check=False,
    )
    return Run(out, done.returncode, done.stdout)
