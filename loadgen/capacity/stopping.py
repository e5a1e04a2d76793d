"""Ctrl-C, SIGTERM or a closed terminal while a search goes on: said once, looked at between steps."""

from __future__ import annotations

import signal
import time
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):  # noqa: N818  it is no error
    """The person ended the search; the message says how."""


class Stopping:
    """Whether to end. A second signal ends this process at once, and its children with it."""

    def __init__(self) -> None:
        self._reason: str | None = None

    def listen(self) -> None:
        for number in ENDING_SIGNALS:
            signal.signal(number, self._on_signal)

    def check(self) -> None:
        """Raises Interrupted."""
        if self._reason is not None:
            raise Interrupted(self._reason)

    def sleep(self, seconds: float) -> None:
        """Raises Interrupted, a tenth of a second after the signal at most."""
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            self.check()
            time.sleep(min(0.1, left_s))
        self.check()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._reason = f"interrupted ({signal.Signals(number).name})"
        signal.signal(number, signal.SIG_DFL)
