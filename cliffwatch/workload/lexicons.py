"""Lexicons, made from what a target's tokenizer counts, or from what its server says of whole prompts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import linear_regression, median, mode

from tokenizers import Tokenizer

from cliffwatch.errors import InputError
from cliffwatch.workload.lexicon import WORDS, Lexicon, Method, TokenCounter
from cliffwatch.workload.prompts import PromptBuilder

LEXICON_WORDS = 256  # one byte of a digest picks a word
PROBE_WORDS = (16, 128, 512)  # sizes of the prompts that calibrate an estimate
CHECKED_TOKENS = (1, 2, 3, 7, 16, 33, 64, 127, 400, 1000, 2500)


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
