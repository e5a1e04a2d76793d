"""Prompts of exactly the asked length, built in microseconds from pieces counted beforehand.

Input length means, everywhere: the tokens the server processes for one prompt (`usage.prompt_tokens`), start token and
chat template included. A `Lexicon` holds what is known of the target's tokenizer; a `PromptBuilder` joins its words.
Every prompt starts with words of its own, so that a prefix cache is hit only where the workload asks for it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import getitem
from pathlib import Path
from statistics import linear_regression, median, mode

from tokenizers import Tokenizer

from cliffwatch.errors import InputError
from cliffwatch.workload.lexicon import BLOCK_TOKENS, WORDS, Lexicon, Method, TokenCounter
from cliffwatch.workload.schedule import PlannedRequest

__all__ = [
    "Built",
    "Lexicon",
    "PromptBuilder",
    "TokenCounter",
    "assumed_lexicon",
    "build_lexicon",
    "calibrated",
    "estimated_lexicon",
    "probe_prompts",
    "tokenizer_counter",
]

LEXICON_WORDS = 256  # one byte of a digest picks a word
POOL_BLOCKS = 256  # one byte of a digest picks a block
UNIQUE_TOKENS = 32  # at least so many of a prompt's own, where it is that long: two cache blocks of vLLM
STREAMS = 4096  # texts of shared blocks that are kept, some kilobytes each
PROBE_WORDS = (16, 128, 512)  # sizes of the prompts that calibrate an estimate
CHECKED_TOKENS = (1, 2, 3, 7, 16, 33, 64, 127, 400, 1000, 2500)


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


def build_lexicon(counter: TokenCounter, method: Method, *, chat_counter: TokenCounter | None = None) -> Lexicon:
    """Count common words with the target's tokenizer, then check on joined prompts that the counts add up.

    `chat_counter` counts texts as one user message with the chat template; without one a chat prompt is taken to
    gain what a completions prompt gains, until `calibrated` knows better.

    Raises:
        InputError: joined prompts do not have the sum of their words' tokens (the text is to be estimated then).
    """
    first = WORDS[0]
    base, twice = counter.count([first, f"{first} {first}"])
    special = 2 * base - twice  # not every server counts an empty text
    inside, opening = defaultdict(list), defaultdict(list)
    for word, joined in zip(WORDS, counter.count([f"{first} {word}" for word in WORDS]), strict=True):
        inside[joined - base].append(f" {word}")
    words = _most_used(inside)
    candidates = [word.strip() for some in words.values() for word in some]
    for word, alone in _openers(candidates, counter, chat_counter):
        opening[alone - special].append(word)
    lexicon = Lexicon(words, _most_used(opening), special, special, method)
    gained = _gained(lexicon, counter)
    chat = gained if chat_counter is None else _gained(lexicon, chat_counter)
    return replace(lexicon, special_tokens=gained, chat_tokens=chat)


def calibrated(lexicon: Lexicon, endpoint: str, pairs: Sequence[tuple[int, int]]) -> Lexicon:
    """The lexicon with what `endpoint` adds set right from (built tokens, server-counted tokens) of real prompts.

    Raises:
        InputError: the difference depends on the prompt: the server counts by another tokenizer.
    """
    differences = [server - built for built, server in pairs]
    if lexicon.method != "estimated" and len(set(differences)) > 1:
        built, server = max(pairs, key=lambda pair: abs(pair[1] - pair[0]))
        raise InputError(
            f"does not count as the server does: {built} tokens here are {server} there",
            field="tokenizer",
            allowed="the server's own tokenizer.json",
        )
    shift = round(median(differences))
    if endpoint == "chat":
        return replace(lexicon, chat_tokens=lexicon.chat_tokens + shift)
    return replace(lexicon, special_tokens=lexicon.special_tokens + shift)


def probe_prompts() -> list[tuple[int, str]]:
    """(number of words, text) of the prompts whose server-counted tokens `estimated_lexicon` needs."""
    return [(count, " ".join((WORDS * (count // len(WORDS) + 1))[:count])) for count in PROBE_WORDS]


def estimated_lexicon(pairs: Sequence[tuple[int, int]], chat_pairs: Sequence[tuple[int, int]] = ()) -> Lexicon:
    """A lexicon by least squares over (words, server-counted tokens), for a target that offers no tokenizer.

    `chat_pairs` are the same over the chat endpoint. Raises InputError for fewer than two sizes, or counts that do
    not grow with the words.
    """
    if len({words for words, _ in pairs}) < 2:
        raise InputError("prompts of two sizes at least are needed to estimate lengths", field="prompts")
    slope, intercept = linear_regression([words for words, _ in pairs], [tokens for _, tokens in pairs])
    if slope < 0.5:
        raise InputError("server-counted tokens do not grow with the prompt", field="prompts", value=list(pairs))
    chat = median([tokens - slope * words for words, tokens in chat_pairs]) if chat_pairs else intercept
    return Lexicon(
        words={1: tuple(f" {word}" for word in WORDS[:LEXICON_WORDS])},
        openers={1: WORDS[:LEXICON_WORDS]},
        special_tokens=max(0, round(intercept)),
        chat_tokens=max(0, round(chat)),
        method="estimated",
        tokens_per_unit=slope,
    )


def assumed_lexicon() -> Lexicon:
    """A lexicon for a target that neither offers a tokenizer nor counts: a token a word, as common words mostly are."""
    return Lexicon(
        {1: tuple(f" {word}" for word in WORDS[:LEXICON_WORDS])}, {1: WORDS[:LEXICON_WORDS]}, 0, 0, "estimated"
    )


def tokenizer_counter(path: Path) -> TokenCounter:
    """A counter by a local `tokenizer.json` (or the folder that holds it). Raises InputError where it is none."""
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:
        raise InputError(f"is not a tokenizer: {error}", file=file, allowed="a tokenizer.json") from error
    tokenizer.no_truncation()  # files of embedding models cut and pad; a server of text generation does not
    tokenizer.no_padding()
    return _TokenizerCounter(tokenizer)


class _TokenizerCounter:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]


@lru_cache
def _of_each_byte(words: tuple[str, ...]) -> tuple[str, ...]:
    """The word that each value of a byte picks."""
    return tuple([words[byte % len(words)] for byte in range(256)])


def _most_used(by_size: dict[int, list[str]]) -> dict[int, tuple[str, ...]]:
    """One-token words where there are plenty, else all sizes; never more than LEXICON_WORDS of a size."""
    usable = {size: tuple(some[:LEXICON_WORDS]) for size, some in by_size.items() if size > 0}
    return {1: usable[1]} if len(usable.get(1, ())) >= LEXICON_WORDS // 4 else usable


def _openers(words: list[str], counter: TokenCounter, chat: TokenCounter | None) -> list[tuple[str, int]]:
    """Words with their tokens at the start of a prompt; only those that mean the same tokens to a chat template.

    Where a template ends in a line break, some tokenizers cut the word after it in another way than at the start.
    """
    alone = counter.count(words)
    inside = alone if chat is None else chat.count(words)
    gained = [after - before for after, before in zip(inside, alone, strict=True)]
    usual = mode(gained)
    return [(word, count) for word, count, gain in zip(words, alone, gained, strict=True) if gain == usual]


def _gained(lexicon: Lexicon, counter: TokenCounter) -> int:
    """Tokens a prompt gains over its words, which must be the same for prompts of any length."""
    builder = PromptBuilder(lexicon, seed=0, nonce="check")
    built = [builder.compose(f"check/{tokens}", tokens) for tokens in CHECKED_TOKENS]
    counted = counter.count([text for text, _ in built])
    gained = {count - length for count, (_, length) in zip(counted, built, strict=True)}
    if len(gained) > 1:
        raise InputError(
            f"words do not add up with this tokenizer: prompts gain {min(gained)} to {max(gained)} tokens",
            field="prompts",
            allowed="a tokenizer that splits text at blanks; else lengths are estimated",
        )
    return gained.pop()
