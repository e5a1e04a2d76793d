"""What is known of the target's tokenizer: common words, and the tokens each adds to a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Literal, Protocol

from cliffwatch.errors import InputError

Method = Literal["server_tokenize", "tokenizer_file", "estimated"]

WORDS = tuple((resources.files("cliffwatch.workload") / "words.txt").read_text(encoding="utf-8").split())
BLOCK_TOKENS = 64


class TokenCounter(Protocol):
    """Counts the tokens of texts as the target would process them, start token included, template excluded."""

    def count(self, texts: Sequence[str]) -> list[int]: ...


@dataclass(frozen=True)
class Lexicon:
    """What prompts are made of.

    Attributes:
        words: by the units each adds inside a prompt, the words (each with its leading blank).
        openers: the same for the word a prompt begins with, which has no blank.
        special_tokens: tokens that a completions prompt gains (a start token).
        chat_tokens: tokens that a chat prompt gains (start token and template).
        turn_tokens: tokens that a chat gains with each further answer and message, beside their own (template).
        method: how lengths are known.
        tokens_per_unit: 1 where lengths are exact; else the mean tokens a word.
    """

    words: Mapping[int, tuple[str, ...]]
    openers: Mapping[int, tuple[str, ...]]
    special_tokens: int
    chat_tokens: int
    method: Method
    tokens_per_unit: float = 1.0
    turn_tokens: int = 0

    def overhead(self, endpoint: str) -> int:
        """Tokens that a prompt gains on `endpoint`."""
        return self.chat_tokens if endpoint == "chat" else self.special_tokens

    @cached_property
    def _inside(self) -> list[tuple[int, ...] | None]:
        """Sizes of words that sum to n, for each n up to twice a block; None where there are none."""
        sizes = sorted(self.words, key=lambda size: -len(self.words[size]))
        ways: list[tuple[int, ...] | None] = [()]
        for total in range(1, 2 * BLOCK_TOKENS):
            shorter = (ways[total - size] for size in sizes if size <= total)
            found = next((way for way in shorter if way is not None), None)
            ways.append(None if found is None else (*found, total - sum(found)))
        return ways

    @cached_property
    def _opening(self) -> list[tuple[int, ...] | None]:
        """The same with an opener first."""
        sizes = sorted(self.openers, key=lambda size: -len(self.openers[size]))
        ways: list[tuple[int, ...] | None] = []
        for total in range(2 * BLOCK_TOKENS):
            rests = ((size, self._inside[total - size]) for size in sizes if size <= total)
            ways.append(next(((size, *rest) for size, rest in rests if rest is not None), None))
        return ways

    def sizes(self, total: int, *, opening: bool) -> tuple[int, ...]:
        """Sizes of pieces that sum to `total`, or to the nearest sum that can be made (the smaller of two)."""
        ways = self._opening if opening else self._inside
        for distance in range(len(ways)):
            for near in (total - distance, total + distance):
                if 0 <= near < len(ways) and (way := ways[near]) is not None:
                    return way
        raise InputError("no prompt can be made of these words", value=sorted(self.words))
