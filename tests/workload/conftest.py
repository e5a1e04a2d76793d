"""Real tokenizers, trained here on the standard library's text."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from cliffwatch.workload.lexicon import Lexicon
from cliffwatch.workload.lexicons import build_lexicon, tokenizer_counter

START = "<s>"
VOCABULARY = {"bytes": 257, "small": 1000, "large": 8000, "blanks": 8000}

TokenizerFile = Callable[[str, bool], Path]


@cache
def _trained(kind: str) -> str:
    """JSON of a tokenizer: byte-level BPE (as GPT, Llama 3) or, for `blanks`, one that marks them (as Llama 2)."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True) if kind == "blanks" else models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    lines = pre_tokenizers.Split("\n", "isolated")
    marked = pre_tokenizers.Sequence([lines, pre_tokenizers.Metaspace(prepend_scheme="first")])
    tokenizer.pre_tokenizer = marked if kind == "blanks" else byte_level
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY[kind],
        special_tokens=[START],
        initial_alphabet=[] if kind == "blanks" else pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(path) for path in sorted(Path(os.__file__).parent.glob("*.py"))[:60]], trainer)
    return str(tokenizer.to_str())


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> TokenizerFile:
    """`tokenizer_file(kind, start)`: a tokenizer.json, with a start token or without."""
    folder = tmp_path_factory.mktemp("tokenizers")

    def make(kind: str, start: bool) -> Path:
        tokenizer = Tokenizer.from_str(_trained(kind))
        if start:
            number = tokenizer.token_to_id(START)
            tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{START} $A", special_tokens=[(START, number)]
            )
        path = folder / f"{kind}-{start}.json"
        tokenizer.save(str(path))
        return path

    return make


@pytest.fixture(scope="module")
def large(tokenizer_file: TokenizerFile) -> tuple[Tokenizer, Lexicon]:
    path = tokenizer_file("large", True)
    return Tokenizer.from_file(str(path)), build_lexicon(tokenizer_counter(path), "tokenizer_file")
