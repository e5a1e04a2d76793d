"""Sessions as columns: how many turns each has, what a turn adds, and the pause before it.

Ids are consecutive within a session, and a session follows the one before it, so every turn's id is known before
anything is sent. First turns are drawn as requests without sessions are; later ones have generators of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cliffwatch.workload.lengths import LENGTHS
from cliffwatch.workload.parts import MAX_DURATION_S, Length
from cliffwatch.workload.session_parts import Sessions

Column = NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of consecutive sessions, one after another.

    Attributes:
        arrival: index of the session within its block.
        turn: from 0.
        input_tokens: of the prompt, were every answer as long as asked; the message and all that was said before.
        added_tokens: what the turn adds to the prompt.
        output_tokens: of the answer, as asked.
        pause_ns: from the end of the answer before to the turn; 0 for a first one.
    """

    arrival: Column
    turn: Column
    input_tokens: Column
    added_tokens: Column
    output_tokens: Column
    pause_ns: Column

    def __len__(self) -> int:
        return len(self.turn)


def draw_turns(
    spec: Sessions, lengths: tuple[Length, Length], first: tuple[Column, Column], rng: Callable[[str], Rng]
) -> Turns:
    """The turns of sessions whose first turns are drawn already.

    Args:
        spec: the sessions.
        lengths: of what a later turn adds, and of its answer.
        first: input and output tokens of the first turns.
        rng: the generator of a named quantity.
    """
    counts = LENGTHS[spec.turns.kind](spec.turns, rng("turns"), len(first[0]))
    arrival = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    turn = np.arange(len(arrival)) - starts[arrival]
    added, output = np.empty_like(turn), np.empty_like(turn)
    is_first = turn == 0
    later = len(turn) - len(counts)
    for column, opening, length, name in zip(
        (added, output), first, lengths, ("turn input", "turn output"), strict=True
    ):
        column[is_first] = opening
        column[~is_first] = LENGTHS[length.kind](length, rng(name), later)
    pause_ns = np.zeros_like(turn)
    drawn_s = [spec.think_time.quantile(share) for share in rng("think").random(later).tolist()]
    pause_ns[~is_first] = np.rint(np.minimum(drawn_s, MAX_DURATION_S) * 1e9)
    said = np.cumsum(added + output)
    before = (said - added - output)[starts]  # said in all sessions before each one
    return Turns(arrival, turn, said - output - before[arrival], added, output, pause_ns)


def named_generator(seed: int, name: str) -> Rng:
    """An independent generator for one named quantity."""
    key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, key])))
