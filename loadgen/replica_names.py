"""Which replica answered, read from the head of its answer: names of bounded length and number."""

from __future__ import annotations

from collections.abc import Mapping

from cliffwatch.records.replicas import MAX_NAME_CHARS, MAX_REPLICAS, OTHER
from cliffwatch.stream.openai_wire import tidy


class ReplicaNames:
    """The names that came so far; one that comes when there are `MAX_REPLICAS` is `OTHER`."""

    def __init__(self, header: str) -> None:
        self._header = header.lower()
        self._names: dict[str, str] = {}

    def of(self, headers: Mapping[str, str] | None) -> str | None:
        """The replica by an answer's headers (names in small letters); None without an answer or the header."""
        value = None if headers is None else headers.get(self._header)
        if not value:
            return None
        key = value[: 4 * MAX_NAME_CHARS]
        name = self._names.get(key)
        if name is None:
            if len(self._names) >= MAX_REPLICAS:
                return OTHER
            name = self._names[key] = tidy(key, MAX_NAME_CHARS)
        return name or None
