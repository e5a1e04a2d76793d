"""Answers computed off the event loop by a bounded pool, each once for as long as the run's files stay as they are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from services.slo.encoded import Encoded
from services.slo.problems import BusyError
from services.slo.shared import Shared

Value = TypeVar("Value")

WORKERS = 4
LOOKUP_WORKERS = 2
MAX_WAITING = 64
MAX_KEPT = 512
MAX_KEPT_BYTES = 16 << 20
DEADLINE_S = 30.0


class Answers:
    """A cache of computed values, keyed by what was asked and by the fingerprint of the files it was read from.

    Askers of the same thing at the same time share one computation. At most `MAX_WAITING` computations are under way
    or waiting, and at most `MAX_KEPT` values are kept, of `MAX_KEPT_BYTES` where they are encoded; one value a key, so
    a live run's old answers do not pile up.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="answer")
        self._lookups = ThreadPoolExecutor(LOOKUP_WORKERS, thread_name_prefix="lookup")
        self._kept: OrderedDict[Hashable, tuple[str, Any]] = OrderedDict()
        self._kept_bytes = 0
        self._computed = Shared()
        self._looked_up = Shared()

    async def look(self, key: Hashable, call: Callable[[], Value]) -> Value:
        """Run a short blocking call (a few `stat`s) apart from the computations, so that these never delay it.

        Askers of one key at one moment share it: each system call gives the interpreter away, and waits to get it back.
        """
        loop = asyncio.get_running_loop()
        return await self._looked_up.get(key, lambda: loop.run_in_executor(self._lookups, call))

    async def get(
        self, key: Hashable, fingerprint: str, compute: Callable[[], Value], *, deadline_s: float = DEADLINE_S
    ) -> Value:
        """The value of `compute()` for these files, computed now or before.

        Raises:
            BusyError: too much is waiting, or the deadline passed; the computation then goes on and is kept.
        """
        kept = self._kept.get(key)
        if kept is not None and kept[0] == fingerprint:
            self._kept.move_to_end(key)
            value: Value = kept[1]
            return value
        shared = self._computed.get((key, fingerprint), lambda: self._start(key, fingerprint, compute))
        try:
            return await asyncio.wait_for(shared, deadline_s)
        except TimeoutError:
            raise BusyError(f"not computed within {deadline_s:g} s; it goes on, ask again") from None

    def close(self) -> None:
        """Wait for what is running; start nothing more."""
        self._pool.shutdown(cancel_futures=True)
        self._lookups.shutdown(cancel_futures=True)

    def _start(self, key: Hashable, fingerprint: str, compute: Callable[[], Value]) -> asyncio.Future[Value]:
        if len(self._computed) >= MAX_WAITING:
            raise BusyError(f"{MAX_WAITING} computations are waiting already")
        future = asyncio.get_running_loop().run_in_executor(self._pool, compute)
        future.add_done_callback(lambda done: self._keep(key, fingerprint, done))
        return future

    def _keep(self, key: Hashable, fingerprint: str, done: asyncio.Future[Any]) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        self._forget(key)
        self._kept[key] = (fingerprint, done.result())
        self._kept_bytes += _bytes(done.result())
        while len(self._kept) > MAX_KEPT or self._kept_bytes > MAX_KEPT_BYTES:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: Hashable) -> None:
        _, value = self._kept.pop(key, (None, None))
        self._kept_bytes -= _bytes(value)


def _bytes(value: object) -> int:
    return len(value) if isinstance(value, bytes | Encoded) else 0
