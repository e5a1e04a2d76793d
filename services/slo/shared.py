"""One answer for all who ask the same thing while it is being made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Shared:
    """What is being made, by what was asked. Each is made to its end, whoever leaves meanwhile, and then forgotten."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, key: Hashable, start: Callable[[], Awaitable[Value]]) -> asyncio.Future[Value]:
        """`start()` under way, or another's that is: shield it, as others wait for it too."""
        future = self._under_way.get(key)
        if future is None:
            future = asyncio.ensure_future(start())
            self._under_way[key] = future
            future.add_done_callback(lambda done: self._finish(key, done))
        return future

    async def get(self, key: Hashable, start: Callable[[], Awaitable[Value]]) -> Value:
        """What `start()` gives, or what another's gives that is under way. Raises what that raises."""
        return await asyncio.shield(self.start(key, start))

    def _finish(self, key: Hashable, done: asyncio.Future[Any]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # else it is logged as never looked at, where every asker left
