"""Open readers of the runs that were asked for last, so that a live run's rows are loaded once and then added to."""

from __future__ import annotations

import threading
from collections import OrderedDict

from cliffwatch.records.manifest import RunState, read_manifest
from cliffwatch.records.reader import RunReader
from services.slo.store import RunFolder

MAX_OPEN = 8


class Readers:
    """At most `MAX_OPEN` readers, the longest unused closed first. Safe for use by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: OrderedDict[str, tuple[str, RunReader]] = OrderedDict()

    def open(self, folder: RunFolder) -> RunReader:
        """The reader of that run as its files now are. Raises RunError where the manifest cannot be read."""
        manifest = read_manifest(folder.path)
        # A live run keeps its reader while it grows; a closed one is opened anew where any file was changed.
        version = "live" if manifest.state is RunState.RUNNING else folder.fingerprint
        identity = f"{manifest.run_id} {manifest.created_unix_s} {version}"
        with self._lock:
            known = self._open.pop(folder.run_id, None)
            reader = known[1] if known is not None and known[0] == identity else RunReader(folder.path)
            self._open[folder.run_id] = (identity, reader)
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
        return reader
