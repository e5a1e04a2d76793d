"""Lexicons: what is learned of a target's tokenizer, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from tokenizers import Tokenizer

from cliffwatch.errors import InputError
from cliffwatch.workload.lexicon import Lexicon
from cliffwatch.workload.lexicons import (
    build_lexicon,
    calibrated,
    estimated_lexicon,
    probe_prompts,
    tokenizer_counter,
)
from cliffwatch.workload.prompts import PromptBuilder
from tests.workload.conftest import TokenizerFile
from tests.workload.test_prompts import ChatCounter, plan


class RepeatCounter:
    """A tokenizer whose counts do not add up: of words that stood before, every fourth costs nothing."""

    def count(self, texts: Sequence[str]) -> list[int]:
        words = [text.split() for text in texts]
        return [len(some) - (len(some) - len(set(some))) // 4 for some in words]


def test_a_tokenizer_whose_counts_do_not_add_up_is_refused() -> None:
    with pytest.raises(InputError, match="words do not add up with this tokenizer: prompts gain"):
        build_lexicon(RepeatCounter(), "server_tokenize")


def test_what_the_server_adds_is_set_right_from_its_counts(large: tuple[Tokenizer, Lexicon]) -> None:
    _, lexicon = large
    chat = calibrated(lexicon, "chat", [(20, 31), (500, 511)])
    assert (chat.chat_tokens, chat.special_tokens) == (lexicon.chat_tokens + 11, lexicon.special_tokens)
    completions = calibrated(lexicon, "completions", [(20, 19)])
    assert completions.special_tokens == lexicon.special_tokens - 1


def test_a_tokenizer_that_is_not_the_servers_is_found_out(large: tuple[Tokenizer, Lexicon]) -> None:
    with pytest.raises(InputError, match="tokenizer: does not count as the server does: 500 tokens here are 640 there"):
        calibrated(large[1], "completions", [(20, 24), (500, 640)])


@pytest.mark.parametrize("kind", ["small", "large"])
def test_an_estimate_is_near_and_says_so(tokenizer_file: TokenizerFile, kind: str) -> None:
    path = tokenizer_file(kind, True)
    counter, chat_counter = tokenizer_counter(path), ChatCounter(path)
    probes = probe_prompts()
    assert [len(text.split()) for _, text in probes] == [words for words, _ in probes]

    def counted(counter: object) -> list[tuple[int, int]]:
        tokens = counter.count([text for _, text in probes])  # type: ignore[attr-defined]
        return [(words, count) for (words, _), count in zip(probes, tokens, strict=True)]

    lexicon = estimated_lexicon(counted(counter), counted(chat_counter))
    assert lexicon.method == "estimated"
    for endpoint, truth in (("completions", counter), ("chat", chat_counter)):
        built = PromptBuilder(lexicon, seed=1).build(replace(plan(2000), endpoint=endpoint))
        assert built.built_input_tokens == pytest.approx(2000, abs=2)
        assert truth.count(built.prompts)[0] == pytest.approx(2000, rel=0.1)


def test_an_estimate_by_straight_line_is_exact_where_the_truth_is_one() -> None:
    lexicon = estimated_lexicon([(16, 25), (128, 193), (512, 769)], [(16, 34), (128, 202)])
    assert lexicon.tokens_per_unit == pytest.approx(1.5)
    assert (lexicon.special_tokens, lexicon.chat_tokens) == (1, 10)


@pytest.mark.parametrize(
    ("pairs", "says"),
    [([], "two sizes"), ([(16, 20)], "two sizes"), ([(16, 20), (16, 21)], "two sizes"), ([(16, 9), (512, 9)], "grow")],
)
def test_an_estimate_needs_prompts_that_differ(pairs: list[tuple[int, int]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        estimated_lexicon(pairs)


def test_a_tokenizer_file_that_cuts_and_pads_counts_whole_texts(tokenizer_file: TokenizerFile, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tokenizer_file("large", False)))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=32)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert tokenizer_counter(tmp_path).count(["the the", "the " * 20 + "the"]) == [2, 21]


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b"[1]"])
def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"tokenizer\.json: is not a tokenizer"):
        tokenizer_counter(path)
