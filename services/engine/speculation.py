"""Speculative decoding: how many drafted tokens a step accepts."""

from __future__ import annotations

import math
import random


class Speculation:
    """Drafts of `tokens` tokens, each accepted with chance `acceptance` if all before it in its draft were.

    A step then brings `(1 - acceptance ** (tokens + 1)) / (1 - acceptance)` tokens a sequence on average (Leviathan et
    al. 2023, equation 1). Drafting itself takes no time, as with drafts looked up in the text so far.
    """

    def __init__(self, tokens: int, acceptance: float, seed: int) -> None:
        self.tokens = tokens
        self.acceptance = acceptance
        self._random = random.Random(seed)  # noqa: S311

    def draw(self) -> int:
        """Tokens accepted of one draft."""
        if self.acceptance in {0.0, 1.0}:
            return int(self.acceptance) * self.tokens
        # The first refusal comes after a geometric number of tokens.
        run = math.log(1.0 - self._random.random()) / math.log(self.acceptance)
        return min(self.tokens, int(run))
