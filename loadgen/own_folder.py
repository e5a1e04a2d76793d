"""Where a worker that does not see the run's folder keeps its rows: a folder of its own on its machine's disk.

The kernel holds a lock on it for as long as the worker lives. A folder without one is a dead worker's, whose rows went
with it: the next worker that needs such a folder removes it. Whole shards that no master took are kept for a week.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from cliffwatch.records.files import list_run, shards_dir

PREFIX = "cliffwatch-rows-"
KEPT_S = 7 * 86_400.0  # a whole shard that was not taken
_NEWBORN_S = 60.0  # made, and not yet locked


class OwnFolder:
    """A new folder, made for one part.

    Attributes:
        path: of the folder, laid out like a run's.
    """

    def __init__(self) -> None:
        """Raises OSError where the machine has no room for it."""
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        shards_dir(self.path).mkdir()

    def remove(self) -> None:
        """Its shard has arrived."""
        shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        """Nothing more is written there by this process."""
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove what this user's dead workers left, except for whole shards of the last `KEPT_S`. Never raises."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is another user's, or somebody else removed it just now
            _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        shards, status = shards_dir(path), os.fstat(descriptor)
        changed_s = shards.stat().st_mtime if shards.is_dir() else status.st_mtime
        age_s = time.time() - changed_s
        if status.st_uid != os.getuid() or age_s < _NEWBORN_S:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError while its worker lives
        whole = shards.is_dir() and list_run(path).finals
        if not whole or age_s > KEPT_S:
            shutil.rmtree(path)
    finally:
        os.close(descriptor)
