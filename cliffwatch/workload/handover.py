"""Who sends which requests, and who takes over what a worker left: shares of the one schedule, cut without overlap.

A share is every `stride`-th request from `start` on. What is left of it after its first requests is such a share again,
and so is each of the pieces it is split into; so a share can be handed on any number of times and stays three numbers.
The users of a closed loop are shared out the same way, and the sessions of a workload that has some: a session is one
worker's from its first turn to its last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count, takewhile

from cliffwatch.workload.schedule import PlannedRequest, schedule
from cliffwatch.workload.spec import Workload

_SKIPPED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Share:
    """The numbers `extra`, all below `start`, and then start, start + stride, start + 2 * stride, ... without end."""

    start: int
    stride: int
    extra: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.start < 0 or self.stride < 1 or any(not 0 <= number < self.start for number in self.extra):
            raise ValueError(f"no share: {self!r}")

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        return (number >= self.start and (number - self.start) % self.stride == 0) or number in self.extra

    def __iter__(self) -> Iterator[int]:
        yield from self.extra
        yield from count(self.start, self.stride)

    def below(self, end: int) -> Iterator[int]:
        """The numbers under `end`, rising."""
        return takewhile(lambda number: number < end, self)

    def rest(self, issued: Collection[int]) -> Share:
        """What is left when the numbers `issued` of this share are gone: those between them, and all after them."""
        gone = issued if isinstance(issued, (set, frozenset)) else set(issued)
        last = max((number for number in gone if number >= self.start and number in self), default=None)
        start = self.start if last is None else last + self.stride
        return Share(start, self.stride, tuple(number for number in self.below(start) if number not in gone))

    def split(self, pieces: int) -> tuple[Share, ...]:
        """The share dealt out like cards: no number twice, none missing, each piece in order."""
        return tuple(
            Share(self.start + piece * self.stride, self.stride * pieces, self.extra[piece::pieces])
            for piece in range(pieces)
        )


def number_of(plan: PlannedRequest) -> int:
    """What a share knows a planned request by: its session, or its own id."""
    return plan.request_id if plan.session is None else plan.session


def shared_plans(workload: Workload, share: Share) -> Iterator[PlannedRequest | None]:
    """The planned requests of a share in order, lazily.

    None stands between them for a stretch that was passed over: finding the middle of a long schedule takes a while,
    and the caller may see to other things then.
    """
    if share.extra:
        wanted = set(share.extra)
        for plan in schedule(workload):
            if (number := number_of(plan)) > share.extra[-1]:
                break
            if number in wanted:
                yield plan
            elif number % _SKIPPED_AT_ONCE == 0:
                yield None
    skipped = 0
    for plan in schedule(workload, shard=share.start % share.stride, shards=share.stride):
        if number_of(plan) >= share.start:
            yield plan
        else:
            skipped += 1
            if skipped % _SKIPPED_AT_ONCE == 0:
                yield None
