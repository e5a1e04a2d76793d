"""Which of the cached blocks that nobody holds goes first when room is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

EvictionName = Literal["lru", "lfu"]


class Idle(Protocol):
    """Blocks that nobody holds, by their hashes."""

    def __len__(self) -> int: ...

    def __contains__(self, key: int) -> bool: ...

    def __iter__(self) -> Iterator[int]:
        """Those that go first come first."""

    def add(self, key: int, uses: int) -> None:
        """A block is idle now; `uses` sequences have held it so far."""

    def discard(self, key: int) -> None:
        """A block is held again, if it was idle."""

    def evict(self) -> int:
        """Forget the one that goes first."""


class Lru:
    """Least recently used first."""

    def __init__(self) -> None:
        self._keys: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def add(self, key: int, uses: int) -> None:  # noqa: ARG002  only how recently counts
        """See `Idle`."""
        self._keys[key] = None

    def discard(self, key: int) -> None:
        """See `Idle`."""
        self._keys.pop(key, None)

    def evict(self) -> int:
        """See `Idle`."""
        return self._keys.popitem(last=False)[0]


class Lfu:
    """Least frequently used first; among those, least recently used."""

    def __init__(self) -> None:
        self._uses: dict[int, int] = {}
        self._alike: dict[int, Lru] = {}  # uses -> the idle blocks that have them

    def __len__(self) -> int:
        return len(self._uses)

    def __contains__(self, key: int) -> bool:
        return key in self._uses

    def __iter__(self) -> Iterator[int]:
        return (key for uses in sorted(self._alike) for key in self._alike[uses])

    def add(self, key: int, uses: int) -> None:
        """See `Idle`."""
        self._uses[key] = uses
        self._alike.setdefault(uses, Lru()).add(key, uses)

    def discard(self, key: int) -> None:
        """See `Idle`."""
        uses = self._uses.pop(key, None)
        if uses is not None:
            self._alike[uses].discard(key)
            self._tidy(uses)

    def evict(self) -> int:
        """See `Idle`."""
        uses = min(self._alike)
        key = self._alike[uses].evict()
        del self._uses[key]
        self._tidy(uses)
        return key

    def _tidy(self, uses: int) -> None:
        if not self._alike[uses]:
            del self._alike[uses]


EVICTIONS: dict[EvictionName, Callable[[], Idle]] = {"lru": Lru, "lfu": Lfu}
