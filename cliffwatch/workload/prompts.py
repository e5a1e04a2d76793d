"""Prompts of exactly the asked length, built in microseconds from pieces counted beforehand.

Input length means, everywhere: the tokens the server processes for one prompt (`usage.prompt_tokens`), start token and
chat template included. A `Lexicon` holds what is known of the target's tokenizer; a `PromptBuilder` joins its words.
Every prompt starts with words of its own, so that a prefix cache is hit only where the workload asks for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from operator import getitem

from cliffwatch.workload.lexicon import BLOCK_TOKENS, Lexicon
from cliffwatch.workload.plan import PlannedRequest

POOL_BLOCKS = 256  # one byte of a digest picks a block
UNIQUE_TOKENS = 32  # at least so many of a prompt's own, where it is that long: two cache blocks of vLLM
STREAMS = 4096  # texts of shared blocks that are kept, some kilobytes each


@dataclass(frozen=True, slots=True)
class Built:
    """The prompts of one request, and the sum of their lengths in tokens as built."""

    prompts: tuple[str, ...]
    built_input_tokens: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive pieces of text with the units of each."""

    pieces: tuple[str, ...]
    sizes: tuple[int, ...]
    text: str
    units: int

    def cut(self, units: int) -> tuple[str, int]:
        """The longest whole pieces from the start that have `units` at most: their text and units."""
        total, end = 0, 0
        for size in self.sizes:
            if total + size > units:
                break
            total, end = total + size, end + 1
        return "".join(self.pieces[:end]), total


class PromptBuilder:
    """Builds the prompts of planned requests: the same text for the same lexicon, seed, nonce and plan.

    `nonce` keeps the texts of two runs of one schedule apart, so that the second does not find the first one's
    prompts in the server's prefix cache; all workers of a run share it.
    """

    def __init__(self, lexicon: Lexicon, seed: int, *, nonce: str = "") -> None:
        self.lexicon = lexicon
        self._key = f"{seed}/{nonce}/"
        self._choices = lru_cache(4 * BLOCK_TOKENS)(self._choose_from)  # every size there is, opening or not
        self._pool = [self._new_head(f"pool/{index}", BLOCK_TOKENS, opening=False) for index in range(POOL_BLOCKS)]
        self._texts = [block.text for block in self._pool]
        self._step = self._pool[0].units
        self._head = lru_cache(STREAMS)(self._new_head)
        self._block_text = lru_cache(STREAMS)(self._stream)

    def build(self, plan: PlannedRequest) -> Built:
        """One text a prompt of `plan`; well under a millisecond for 16 of 1k tokens or one of 32k."""
        overhead = self.lexicon.overhead(plan.endpoint)
        units = max(1, round((plan.input_tokens - overhead) / self.lexicon.tokens_per_unit))
        texts, total = [], 0
        for index in range(plan.batch):
            prefix, shared = self._prefix(plan, units)
            own, length = self.compose(f"{plan.request_id}/{index}", units - shared, opening=not shared)
            texts.append(prefix + own)
            total += overhead + round((shared + length) * self.lexicon.tokens_per_unit)
        return Built(prompts=tuple(texts), built_input_tokens=total)

    def build_turn(self, plan: PlannedRequest) -> Built:
        """The message of a session's later turn, which adds `plan.added_tokens` to the prompt, template included."""
        scale = self.lexicon.tokens_per_unit
        units = max(1, round((plan.added_tokens - self.lexicon.turn_tokens) / scale))
        text, length = self.compose(f"{plan.request_id}/0", units)
        before = plan.input_tokens - plan.added_tokens
        return Built(prompts=(text,), built_input_tokens=before + self.lexicon.turn_tokens + round(length * scale))

    def compose(self, name: str, units: int, *, opening: bool = True) -> tuple[str, int]:
        """A text of `units` and the units it really has: words that only `name` begins with, then pooled blocks."""
        if not units:
            return "", 0
        blocks = max(0, (units - UNIQUE_TOKENS) // self._step)
        digest = self._digest(name, 2 * BLOCK_TOKENS + blocks)
        choices, length = self._choices(units - blocks * self._step, opening)
        pieces = [*map(getitem, choices, digest), *[self._texts[index] for index in digest[2 * BLOCK_TOKENS :]]]
        return "".join(pieces), length + blocks * self._step

    def _prefix(self, plan: PlannedRequest, units: int) -> tuple[str, int]:
        """What the plan's prompts have in common with others: a trace's blocks, or the first part of a group."""
        if plan.prefix_blocks:
            return self._recorded(plan, units)
        if plan.prefix_group is None:
            return "", 0
        share = plan.prefix_tokens - self.lexicon.overhead(plan.endpoint)
        wanted = min(units, max(0, round(share / self.lexicon.tokens_per_unit)))
        return self._stream(f"group/{plan.prefix_group}", BLOCK_TOKENS, True, wanted)

    def _recorded(self, plan: PlannedRequest, units: int) -> tuple[str, int]:
        """The texts of the plan's blocks, each ending where its tokens do; the first leaves room for the template.

        A block whose words cannot have its exact size leaves the rest to the next one.
        """
        overhead = self.lexicon.overhead(plan.endpoint)
        scale = self.lexicon.tokens_per_unit
        opening = min(BLOCK_TOKENS, max(1, round(plan.prefix_block_tokens / scale)))
        shortest = min(self.lexicon.words)
        units -= 0 if shortest == 1 else 2 * shortest  # the end is made up of words that sum to what is missing
        texts, total = [], 0
        for number, block in enumerate(plan.prefix_blocks, start=1):
            end = min(units, round((number * plan.prefix_block_tokens - overhead) / scale))
            if end > total:
                text, length = self._block_text(f"hash/{block}", opening, not total, end - total)
                texts.append(text)
                total += length
        return "".join(texts), total

    def _stream(self, name: str, first: int, opening: bool, units: int) -> tuple[str, int]:
        """The endless text of `name`, which begins with `first` units of its own, cut at `units`: text and units."""
        head = self._head(name, first, opening)
        whole, left = divmod(units - head.units, self._step)
        if whole < 0:
            return head.cut(units)
        order = self._digest(f"{name}/order", whole + 1)
        last, length = self._pool[order[whole]].cut(left)
        text = head.text + "".join([self._texts[index] for index in order[:whole]]) + last
        return text, head.units + whole * self._step + length

    def _new_head(self, name: str, units: int, opening: bool) -> _Block:
        return self._compose(self._digest(name, 2 * BLOCK_TOKENS), units, opening=opening)

    def _compose(self, digest: bytes, units: int, *, opening: bool) -> _Block:
        choices, length = self._choices(units, opening)
        pieces = tuple(map(getitem, choices, digest))
        return _Block(pieces, self.lexicon.sizes(units, opening=opening), "".join(pieces), length)

    def _choose_from(self, units: int, opening: bool) -> tuple[tuple[tuple[str, ...], ...], int]:
        """What a text of `units` is made of: for each of its places the word of every byte, and the units it has."""
        sizes = self.lexicon.sizes(units, opening=opening)
        first = self.lexicon.openers if opening else self.lexicon.words
        lists = [(self.lexicon.words if place else first)[size] for place, size in enumerate(sizes)]
        return tuple([_of_each_byte(words) for words in lists]), sum(sizes)

    def _digest(self, name: str, length: int) -> bytes:
        return hashlib.shake_128((self._key + name).encode()).digest(length)


@lru_cache
def _of_each_byte(words: tuple[str, ...]) -> tuple[str, ...]:
    """The word that each value of a byte picks."""
    return tuple([words[byte % len(words)] for byte in range(256)])
