"""Where a surface's rows come from: a run folder, or a file of other tools' measurements."""

from __future__ import annotations

from pathlib import Path

from cliffwatch.records.foreign import Foreign, read_foreign
from cliffwatch.records.reader import RunReader


def open_source(path: Path) -> RunReader | Foreign:
    """The rows behind a path. Raises InputError or RunError."""
    return RunReader(path) if path.is_dir() else read_foreign(path)
