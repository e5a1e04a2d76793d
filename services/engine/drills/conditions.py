"""What is wrong with an engine at one moment, whichever faults brought it about."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeVar


@dataclass(frozen=True, slots=True)
class Refusal:
    """A share of the requests is answered with an error."""

    share: float
    status: int


@dataclass(frozen=True, slots=True)
class Break:
    """A share of the answers breaks off after some tokens: with an `error` in it, or `cut` with its connection."""

    share: float
    after_tokens: int
    ending: Literal["error", "cut"]


Mishap = TypeVar("Mishap", Refusal, Break)


def befalling(mishaps: tuple[Mishap, ...], luck: Random) -> Mishap | None:
    """The one that befalls a request; each is drawn for by its share, in their order."""
    return next((mishap for mishap in mishaps if luck.random() < mishap.share), None)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The sum of the faults of a moment.

    Attributes:
        down: nobody is there; connections are cut.
        loading: every request is answered with 503.
        slowness: how many times as long a step takes.
        hung: no step ends.
        lost_blocks: of the key-value cache, held by nobody.
    """

    down: bool = False
    loading: bool = False
    slowness: float = 1.0
    hung: bool = False
    lost_blocks: int = 0
    refusals: tuple[Refusal, ...] = ()
    breaks: tuple[Break, ...] = ()

    def __or__(self, other: Conditions) -> Conditions:
        """Both at once."""
        return Conditions(
            down=self.down or other.down,
            loading=self.loading or other.loading,
            slowness=self.slowness * other.slowness,
            hung=self.hung or other.hung,
            lost_blocks=self.lost_blocks + other.lost_blocks,
            refusals=self.refusals + other.refusals,
            breaks=self.breaks + other.breaks,
        )


WELL = Conditions()
