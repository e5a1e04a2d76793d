"""One prompt and its answer on the way through the engine."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any


class Sequence:
    """One prompt and its answer on the way through the engine; `tag` belongs to the caller."""

    __slots__ = (
        "burst",
        "cached_tokens",
        "computed",
        "done",
        "generated",
        "hashes",
        "held",
        "max_tokens",
        "preemptions",
        "priority",
        "private",
        "prompt_tokens",
        "rank",
        "room",
        "tag",
    )

    def __init__(
        self, prompt_tokens: int, max_tokens: int, hashes: Seq[int] = (), tag: Any = None, *, priority: int = 0
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.hashes = hashes
        self.tag = tag
        self.priority = priority  # lower is more urgent
        self.rank = (0, 0)  # whose turn it is, lower is sooner; the scheduler gives it
        self.computed = 0  # tokens whose keys and values are in the cache
        self.generated = 0
        self.burst = 1  # tokens that its latest step brought
        self.cached_tokens = 0  # of the prompt, found in the prefix cache when it was first scheduled
        self.preemptions = 0
        self.private = 0  # blocks held alone
        self.held: list[int] = []  # shared blocks held
        self.room = 0  # tokens the held blocks can still take
        self.done = False

    @property
    def known_tokens(self) -> int:
        """Tokens that exist so far: the prompt and the answer up to now."""
        return self.prompt_tokens + self.generated
