"""A planned request, and consecutive ones as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from cliffwatch.records.schema import Phase

PHASES = (Phase.COLD, Phase.WARMUP, Phase.MEASURED)
NO_PREFIX = -1
# Columns of mixes, indexes into the entries of the workload's field of that name.
MIXES = {"model": "models", "tenant": "tenants", "priority": "priority"}
# Columns that only some workloads have, and what stands for a missing one.
EXTRA_COLUMNS: dict[str, int | None] = {
    **dict.fromkeys(MIXES), "session": None, "turn": None, "added_tokens": 0, "pause_ns": 0
}  # fmt: skip
Column = NDArray[np.int64]


class PlannedRequest(msgspec.Struct, frozen=True):
    """One request to send.

    Lengths are tokens per prompt. `intended_ns` counts from the start of the load and is 0 in a closed loop, where a
    user's freedom decides. The first `prefix_tokens` of each prompt are those of `prefix_group`; or, where there are
    `prefix_blocks`, its successive parts of `prefix_block_tokens` each have these ids (equal ids, equal text), and
    `prefix_tokens` are those that an earlier prompt began with too. `model`, `tenant` and `priority` are null where the
    workload has no mix of them.

    In a session, `added_tokens` of the prompt are the turn's own, the others are what was said before, were every
    answer as long as asked; `then` is the next turn, due `pause_ns` after the answer before it has ended. Of such a
    turn `intended_ns` is the earliest possible.
    """

    request_id: int
    intended_ns: int
    input_tokens: int
    output_tokens: int
    batch: int
    cache: str
    prefix_group: int | None
    phase: Phase
    endpoint: str
    prefix_tokens: int = 0
    prefix_blocks: tuple[int, ...] = ()
    prefix_block_tokens: int = 0
    model: str | None = None
    tenant: str | None = None
    priority: int | None = None
    session: int | None = None
    turn: int | None = None
    added_tokens: int = 0
    pause_ns: int = 0
    then: PlannedRequest | None = None

    def turns(self) -> Iterator[PlannedRequest]:
        """This request and all later turns of its session."""
        plan: PlannedRequest | None = self
        while plan is not None:
            yield plan
            plan = plan.then


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """Consecutive planned requests as columns of equal length; `prefix_group` is -1 where none, `phase` an index
    into PHASES. `prefix_blocks` is empty unless a trace has them. `extra` holds those of `EXTRA_COLUMNS` that the
    workload has; a session's turns follow one another, and those of one block begin and end in it."""

    request_id: Column
    intended_ns: Column
    input_tokens: Column
    output_tokens: Column
    batch: Column
    prefix_group: Column
    prefix_tokens: Column
    phase: Column
    prefix_blocks: tuple[tuple[int, ...], ...] = field(default=(), kw_only=True)
    prefix_block_tokens: int = field(default=0, kw_only=True)
    extra: Mapping[str, Column] = field(default_factory=dict, kw_only=True)

    def __len__(self) -> int:
        return len(self.request_id)

    @property
    def shared(self) -> NDArray[np.bool_]:
        """Which requests begin as others do."""
        shared: NDArray[np.bool_] = (self.prefix_group != NO_PREFIX) | (self.prefix_tokens > 0)
        return shared

    def columns(self) -> tuple[Column, ...]:
        """Those that every block has."""
        return (
            self.request_id,
            self.intended_ns,
            self.input_tokens,
            self.output_tokens,
            self.batch,
            self.prefix_group,
            self.prefix_tokens,
            self.phase,
        )

    def of_shard(self, shard: int, shards: int) -> Column:
        """The places of a shard's requests: every `shards`-th request, or whole session."""
        return np.flatnonzero(self.extra.get("session", self.request_id) % shards == shard)

    def first(self, count: int) -> PlanBlock:
        """The first `count` requests; the block itself where it has no more."""
        return self if len(self) <= count else joined([self], count)


def joined(blocks: Sequence[PlanBlock], count: int) -> PlanBlock:
    """The first `count` requests of successive blocks as one."""
    columns = zip(*(block.columns() for block in blocks), strict=True)
    extra = {name: np.concatenate([block.extra[name] for block in blocks])[:count] for name in blocks[0].extra}
    prefix_blocks = tuple(ids for block in blocks for ids in block.prefix_blocks)[:count]
    return PlanBlock(
        *(np.concatenate(column)[:count] for column in columns),
        prefix_blocks=prefix_blocks,
        prefix_block_tokens=blocks[0].prefix_block_tokens,
        extra=extra,
    )
