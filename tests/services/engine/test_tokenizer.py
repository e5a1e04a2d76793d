"""The stand-in's tokenizer: lossless, additive over words, bounded pieces; a prefix cache's keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.engine import tokenizer
from services.engine.words import COUNT, WORDS, Text

words = st.text(alphabet=st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=30)


def test_known_counts() -> None:
    assert tokenizer.tokenize("hello tokenization") == ["hello", " tokeniza", "tion"]
    assert tokenizer.tokenize("a  b\n") == ["a", " ", " b", "\n"]
    assert tokenizer.tokenize("") == []
    assert len(tokenizer.completion_prompt("hello world")) == 3  # the start token and two words
    assert len(tokenizer.completion_prompt("hello world", special=False)) == 2
    # start, header, role, end of header, gap, two words, end of turn; then header, role, end of header, gap
    assert len(tokenizer.chat_prompt([("user", " hello there ")])) == 12


@given(st.text(max_size=300))
def test_pieces_joined_are_the_text(text: str) -> None:
    pieces = tokenizer.tokenize(text)
    assert "".join(pieces) == text
    assert all(1 <= len(piece) <= tokenizer.MAX_TOKEN_CHARACTERS for piece in pieces)


@given(st.lists(words, min_size=1, max_size=20))
def test_counts_add_up_over_words(parts: list[str]) -> None:
    assert len(tokenizer.tokenize(" ".join(parts))) == sum(len(tokenizer.tokenize(part)) for part in parts)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), words), min_size=1, max_size=5))
def test_a_chat_adds_a_fixed_number_of_tokens_a_message(messages: list[tuple[str, str]]) -> None:
    contents = sum(len(tokenizer.tokenize(content.strip())) for _, content in messages)
    expected = contents + 5 * len(messages) + 1 + 4
    assert len(tokenizer.chat_prompt(messages)) == expected


def test_ids_are_stable_and_in_the_vocabulary() -> None:
    ids = tokenizer.token_ids([*tokenizer.completion_prompt("hello wörld"), 7])
    assert ids == [128_000, *ids[1:3], 7]
    assert ids == tokenizer.token_ids([*tokenizer.completion_prompt("hello wörld"), 7])
    assert all(0 <= number < tokenizer.VOCABULARY for number in ids)


@given(st.lists(st.integers(0, 99), max_size=100), st.lists(st.integers(0, 99), max_size=100))
def test_block_hashes_agree_exactly_as_far_as_the_prefixes_do(left: list[int], right: list[int]) -> None:
    common = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    a, b = tokenizer.block_hashes(left), tokenizer.block_hashes(right)
    assert len(a) == len(left) // tokenizer.BLOCK_TOKENS
    same = common // tokenizer.BLOCK_TOKENS
    assert a[:same] == b[:same]
    assert all(x != y for x, y in zip(a[same:], b[same:], strict=False))


def test_every_word_of_an_answer_is_one_token_and_safe_in_json() -> None:
    assert len(set(WORDS)) == COUNT
    assert all(tokenizer.tokenize(word) == [word] and word[1:].isascii() and word[1:].isalpha() for word in WORDS)
    text = Text(b"key", 3)
    assert len(tokenizer.tokenize(text.first(500))) == 500
    assert sorted(tokenizer.tokenize(text.first(COUNT))) == sorted(WORDS)  # the stride visits all before it repeats
    assert text.first(20) == text.first(7) + text.first(13, after=7)
