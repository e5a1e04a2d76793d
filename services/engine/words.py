"""The text of answers: short common words in an order drawn from the request, one word one token."""

from __future__ import annotations

import zlib

_LIST = (
    "about above after again air all along also always and animal answer any around ask away back base be because "
    "been before begin below between big book both boy bring build but by call came can car carry change children "
    "city close cold come could country cross cut day did do door down draw each earth eat end enough even every "
    "example eye face family far father feet few find first food for form found four from get girl give go good "
    "great group grow had hand hard has have head hear help here high him home hot house how idea if in into it "
    "keep kind king know land large last late"
)
WORDS = tuple(f" {word}" for word in _LIST.split())
ENCODED = tuple(word.encode("ascii") for word in WORDS)

# A prime number of words: every stride below it visits all of them before it repeats.
COUNT = len(WORDS)


class Text:
    """An endless text: word `k` is `WORDS[(start + k * stride) % COUNT]`."""

    __slots__ = ("start", "stride")

    def __init__(self, key: bytes, seed: int) -> None:
        draw = zlib.crc32(key, seed & 0xFFFFFFFF)
        self.start = draw % COUNT
        self.stride = 1 + (draw >> 8) % (COUNT - 1)

    def first(self, words: int, *, after: int = 0) -> str:
        """`words` words, joined; the first ones, or those that follow the first `after`."""
        return "".join(WORDS[(self.start + k * self.stride) % COUNT] for k in range(after, after + words))
