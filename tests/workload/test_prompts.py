"""Prompts: exactly the asked tokens on every tokenizer and endpoint, unique where asked, shared where asked."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tokenizers import Tokenizer

from cliffwatch.records.schema import Phase
from cliffwatch.workload.lexicon import WORDS, Lexicon
from cliffwatch.workload.lexicons import (
    build_lexicon,
    tokenizer_counter,
)
from cliffwatch.workload.prompts import PromptBuilder
from cliffwatch.workload.schedule import PlannedRequest, schedule
from cliffwatch.workload.spec import load_workload, with_changes
from tests.workload.conftest import TokenizerFile

KINDS = ["bytes", "small", "large", "blanks"]


class ChatCounter:
    """Counts as a server does for one user message under a template (here with trimming, as Llama 3 has it)."""

    def __init__(self, path: Path) -> None:
        self._counter = tokenizer_counter(path)

    def count(self, texts: Sequence[str]) -> list[int]:
        return self._counter.count([f"[user]\n{text.strip()}\n[assistant]\n" for text in texts])


def plan(
    tokens: int, *, batch: int = 1, request_id: int = 0, group: int | None = None, shared: int = 0
) -> PlannedRequest:
    return PlannedRequest(
        request_id=request_id,
        intended_ns=0,
        input_tokens=tokens,
        output_tokens=1,
        batch=batch,
        cache="none" if group is None else "prefix",
        prefix_group=group,
        phase=Phase.MEASURED,
        endpoint="chat" if batch == 1 else "completions",
        prefix_tokens=shared,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_length_is_what_the_server_processes(
    tokenizer_file: TokenizerFile, kind: str, start: bool, endpoint: str
) -> None:
    """With and without a start token, on both endpoints: one definition of input length."""
    path = tokenizer_file(kind, start)
    counters = {"completions": tokenizer_counter(path), "chat": ChatCounter(path)}
    lexicon = build_lexicon(counters["completions"], "server_tokenize", chat_counter=counters["chat"])
    builder = PromptBuilder(lexicon, seed=1)
    sizes = [200, 1024, 1025, 4097, *range(60, 190, 7)]
    for index, tokens in enumerate(sizes):
        asked = replace(plan(tokens, request_id=index), endpoint=endpoint)
        built = builder.build(asked)
        assert counters[endpoint].count(built.prompts) == [tokens]
        assert built.built_input_tokens == tokens


@pytest.mark.parametrize("start", [False, True])
def test_length_is_the_same_on_every_endpoint_that_takes_plain_text(tokenizer_file: TokenizerFile, start: bool) -> None:
    counter = tokenizer_counter(tokenizer_file("large", start))
    builder = PromptBuilder(build_lexicon(counter, "server_tokenize"), seed=1)
    for endpoint in ("completions", "llamacpp", "triton"):
        built = builder.build(replace(plan(200), endpoint=endpoint))
        assert (counter.count(built.prompts), built.built_input_tokens) == ([200], 200)


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_turn_adds_exactly_what_was_asked(tokenizer_file: TokenizerFile, kind: str) -> None:
    path = tokenizer_file(kind, True)
    chat = ChatCounter(path)
    learned = build_lexicon(tokenizer_counter(path), "server_tokenize", chat_counter=chat)
    lexicon = dataclasses.replace(learned, turn_tokens=9)
    builder = PromptBuilder(lexicon, seed=1)
    for index, added in enumerate((40, 77, 200, 1025)):
        turn = replace(plan(3000 + added, request_id=index), endpoint="chat", added_tokens=added)
        built = builder.build_turn(turn)
        assert chat.count(built.prompts)[0] - lexicon.chat_tokens == added - 9
        assert built.built_input_tokens == 3000 + added


def test_the_start_token_is_known(tokenizer_file: TokenizerFile) -> None:
    for start in (False, True):
        lexicon = build_lexicon(tokenizer_counter(tokenizer_file("large", start)), "tokenizer_file")
        assert lexicon.special_tokens == lexicon.chat_tokens == int(start)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tokens=st.integers(1, 6000),
    batch=st.integers(1, 4),
    request_id=st.integers(0, 1 << 40),
    group=st.none() | st.integers(0, 5),
    share=st.floats(0, 1),
)
def test_any_plan_is_built_as_long_as_it_says(
    large: tuple[Tokenizer, Lexicon], tokens: int, batch: int, request_id: int, group: int | None, share: float
) -> None:
    tokenizer, lexicon = large
    asked = plan(tokens, batch=batch, request_id=request_id, group=group, shared=int(tokens * share))
    built = PromptBuilder(lexicon, seed=3).build(asked)
    counts = [len(tokenizer.encode(prompt).ids) for prompt in built.prompts]
    assert sum(counts) == built.built_input_tokens
    assert counts == [max(tokens, 2)] * batch  # a start token and one word at least


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_too_short_for_the_words_says_its_true_length(tokenizer_file: TokenizerFile, kind: str) -> None:
    counter = tokenizer_counter(tokenizer_file(kind, True))
    builder = PromptBuilder(build_lexicon(counter, "tokenizer_file"), seed=1)
    for tokens in range(1, 40):
        built = builder.build(plan(tokens, request_id=tokens))
        assert counter.count(built.prompts) == [built.built_input_tokens]
        assert abs(built.built_input_tokens - tokens) <= 5


def test_prompts_begin_with_tokens_of_their_own(large: tuple[Tokenizer, Lexicon]) -> None:
    tokenizer, lexicon = large
    builder = PromptBuilder(lexicon, seed=1)
    prompts = [text for index in range(500) for text in builder.build(plan(80, batch=4, request_id=index)).prompts]
    first_block = {tuple(tokenizer.encode(text).ids[:16]) for text in prompts}
    assert len(first_block) == 2000  # a cache block of 16, the start token among them


def test_text_depends_on_seed_and_nonce_and_on_nothing_else(large: tuple[Tokenizer, Lexicon]) -> None:
    _, lexicon = large
    asked = plan(300, batch=2, request_id=9)
    text = PromptBuilder(lexicon, seed=1).build(asked)
    later = PromptBuilder(lexicon, seed=1)
    later.build(plan(4000, request_id=8))
    assert later.build(asked) == text
    for other in (PromptBuilder(lexicon, seed=2), PromptBuilder(lexicon, seed=1, nonce="run-2")):
        assert not set(other.build(asked).prompts) & set(text.prompts)


@pytest.mark.parametrize("kind", ["small", "large"])
def test_a_group_shares_its_first_tokens_and_no_more(tokenizer_file: TokenizerFile, kind: str) -> None:
    path = tokenizer_file(kind, True)
    tokenizer = Tokenizer.from_file(str(path))
    builder = PromptBuilder(build_lexicon(tokenizer_counter(path), "tokenizer_file"), seed=1)

    def ids(*args: int, group: int = 2, batch: int = 1) -> list[list[int]]:
        tokens, shared, request_id = args
        built = builder.build(plan(tokens, batch=batch, request_id=request_id, group=group, shared=shared))
        return [tokenizer.encode(text).ids for text in built.prompts]

    slack = 0 if kind == "large" else 4  # a group is cut between words, which here have up to 5 tokens
    for short, long in ((100, 1000), (40, 64), (65, 400), (128, 129), (3000, 3000)):
        one, two = ids(short + 50, short, 1)[0], ids(long + 50, long, 2)[0]
        common = next(place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
        assert short - slack <= common < short + 8  # a word or two may be alike by chance
    several = ids(1000, 800, 3, batch=4)
    assert len({tuple(some[: 800 - slack]) for some in several}) == 1
    assert len({tuple(some[:824]) for some in several}) == 4
    assert ids(1000, 800, 1, group=1)[0][:16] != ids(1000, 800, 1, group=2)[0][:16]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("endpoint", ["completions", "chat"])
def test_blocks_of_equal_ids_have_equal_tokens_and_prompts_their_exact_length(
    tokenizer_file: TokenizerFile, kind: str, endpoint: str
) -> None:
    path = tokenizer_file(kind, True)
    counters = {"completions": tokenizer_counter(path), "chat": ChatCounter(path)}
    lexicon = build_lexicon(counters["completions"], "server_tokenize", chat_counter=counters["chat"])
    tokenizer = Tokenizer.from_file(str(path))

    def ids(tokens: int, *blocks: int, size: int = 512, request_id: int = 0) -> list[int]:
        asked = replace(
            plan(tokens, request_id=request_id), endpoint=endpoint, prefix_blocks=blocks, prefix_block_tokens=size
        )
        built = PromptBuilder(lexicon, seed=1).build(asked)  # a new one each time: nothing hangs on what came before
        assert counters[endpoint].count(built.prompts) == [tokens]
        assert built.built_input_tokens == tokens
        return list(tokenizer.encode(built.prompts[0]).ids)

    def common(one: list[int], two: list[int]) -> int:
        return next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))

    # what a prompt gains stands before its text and, of a template, after it: a block may end that much earlier
    slack = lexicon.overhead(endpoint) + (0 if kind in {"large", "blanks"} else 16)
    base = ids(1500, 7, 8, 9)
    assert 1024 - slack <= common(base, ids(1500, 7, 8, 10)) < 1024 + 4
    assert 512 - slack <= common(base, ids(1500, 7, 3, 9)) < 512 + 4
    assert common(base, ids(1500, 6, 8, 9)) < 8
    assert common(base, ids(1300, 7, 8, 9)) >= 1300 - slack  # the same third block, cut shorter
    again = ids(1500, 7, 8, 9, request_id=5)
    assert again == base or (kind not in {"large", "blanks"} and common(again, base) >= 1500 - slack)
    assert 1024 - slack <= common(ids(1500, 7, 8), ids(1500, 7, 8, request_id=1)) < 1024 + 4  # the rest is its own
    assert 320 - slack <= common(ids(400, *range(20), size=16), ids(400, *range(21), size=16)) < 320 + 4


def test_a_trace_of_prompts_shares_what_its_ids_say(large: tuple[Tokenizer, Lexicon]) -> None:
    """Tokens found in a cache of whole 16-token blocks, as servers keep one, against those of the plan."""
    tokenizer, lexicon = large
    builder = PromptBuilder(lexicon, seed=1)
    cached: set[tuple[int, ...]] = set()
    chains = [(0, 1, 2), (0, 1, 3), (0, 4), (5,), (0, 1, 2, 6), (5,), (0, 1, 2)]
    for index, chain_ids in enumerate(chains):
        tokens = 512 * len(chain_ids) - 100
        asked = replace(plan(tokens, request_id=index), prefix_blocks=chain_ids, prefix_block_tokens=512)
        text = tokenizer.encode(builder.build(asked).prompts[0]).ids
        prefixes = [tuple(text[: end + 16]) for end in range(0, len(text) - 15, 16)]
        found = 16 * sum(prefix in cached for prefix in prefixes)
        before = {chain[:depth] for chain in chains[:index] for depth in range(1, len(chain) + 1)}
        leading = max((depth for depth in range(1, len(chain_ids) + 1) if chain_ids[:depth] in before), default=0)
        lasts = [512 * len(chain) - 100 for chain in chains[:index] if chain[:leading] == chain_ids[:leading]]
        expected = min(tokens, 512 * leading, max(lasts, default=0))
        assert expected - 16 < found <= expected
        cached.update(prefixes)


def test_the_presets_prompts_are_built_in_under_a_millisecond(large: tuple[Tokenizer, Lexicon]) -> None:
    builder = PromptBuilder(large[1], seed=1)
    blocks = replace(plan(32768), prefix_blocks=tuple(range(64)), prefix_block_tokens=512)
    for asked in (plan(1024, batch=16), plan(32768), plan(32768, group=1, shared=26214), blocks):
        builder.build(asked)
        taken = []
        for index in range(30):
            began = time.perf_counter()
            builder.build(replace(asked, request_id=index))
            taken.append(time.perf_counter() - began)
        assert min(taken) < 0.001  # the least: other work on the machine only adds


def test_the_words_are_plain_and_once_each() -> None:
    assert len(set(WORDS)) == len(WORDS) > 512
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)


def test_a_whole_schedule_is_exact(large: tuple[Tokenizer, Lexicon]) -> None:
    tokenizer, lexicon = large
    builder = PromptBuilder(lexicon, seed=42)
    for asked in schedule(with_changes(load_workload("longtail"), duration=None, requests=40, warmup={})):
        built = builder.build(asked)
        assert [len(tokenizer.encode(text).ids) for text in built.prompts] == [asked.input_tokens] * asked.batch
