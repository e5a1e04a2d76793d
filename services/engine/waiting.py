"""The queue of sequences that wait for a place: most urgent first, then first come first served."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from services.engine.sequence import Sequence

_Entry = tuple[tuple[int, int], Sequence]


class Waiting:
    """A queue by rank. A preempted sequence keeps its rank, so it comes before all that arrived after it."""

    def __init__(self) -> None:
        self._heap: list[_Entry] = []

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[Sequence]:
        """In order."""
        return (sequence for _, sequence in sorted(self._heap, key=lambda entry: entry[0]))

    def __contains__(self, sequence: Sequence) -> bool:
        return any(each is sequence for _, each in self._heap)

    @property
    def first(self) -> Sequence:
        """The next one, which stays."""
        return self._heap[0][1]

    def add(self, sequence: Sequence) -> None:
        """Queue it by its rank."""
        heapq.heappush(self._heap, (sequence.rank, sequence))

    def take(self) -> Sequence:
        """The next one, which leaves."""
        return heapq.heappop(self._heap)[1]

    def remove(self, sequence: Sequence) -> None:
        """Take one out wherever it stands."""
        self._heap = [entry for entry in self._heap if entry[1] is not sequence]
        heapq.heapify(self._heap)
