"""The stand-in's tokenizer: deterministic, additive over words, and cheap enough to run on every request.

A token is a run of up to eight non-space characters together with the one whitespace character before it, if any;
every whitespace character beyond that is a token of its own. So `"hello tokenization"` is `hello`, ` tokeniza`,
`tion`: three tokens. Joining texts by one space adds their counts, which real tokenizers only do nearly.

Around a completions prompt the model adds one start token; a chat prompt is rendered by a template shaped like
Llama-3's (one start token, five tokens a message around its trimmed content, four that open the answer).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

Token = str | int

BLOCK_TOKENS = 16
VOCABULARY = 128_256
MAX_TOKEN_CHARACTERS = 9
_FIRST_TEXT_ID = 1_000
_FIRST_SPECIAL_ID = 128_000
_PIECE = re.compile(r"\s?\S{1,8}|\s")

START = "<|begin_of_text|>"
_HEADER = "<|start_header_id|>"
_END_HEADER = "<|end_header_id|>"
_GAP = "\n\n"
_END_OF_TURN = "<|eot_id|>"
_SPECIAL_IDS = {START: 128_000, _HEADER: 128_006, _END_HEADER: 128_007, _END_OF_TURN: 128_009, _GAP: 271}


def tokenize(text: str) -> list[str]:
    """The text's pieces, in order; joined they are the text again."""
    return _PIECE.findall(text)


def completion_prompt(text: str, *, special: bool = True) -> list[Token]:
    """Tokens of a completions prompt: the start token (unless `special` is off) and the text."""
    return [START, *tokenize(text)] if special else list(tokenize(text))


def chat_prompt(messages: Iterable[tuple[str, str]], *, special: bool = True, open_answer: bool = True) -> list[Token]:
    """Tokens of `(role, content)` messages through the chat template.

    Every role is one token. `open_answer` adds the header of the assistant's turn (four tokens).
    """
    tokens: list[Token] = [START] if special else []
    for role, content in messages:
        tokens += [_HEADER, role, _END_HEADER, _GAP, *tokenize(content.strip()), _END_OF_TURN]
    if open_answer:
        tokens += [_HEADER, "assistant", _END_HEADER, _GAP]
    return tokens


def token_ids(tokens: Sequence[Token]) -> list[int]:
    """A stable id per token, below `VOCABULARY`; ids stand for themselves. Two pieces may share an id."""
    return [token if isinstance(token, int) else _text_id(token) for token in tokens]


def _text_id(piece: str) -> int:
    special = _SPECIAL_IDS.get(piece)
    if special is not None:
        return special
    return _FIRST_TEXT_ID + zlib.crc32(piece.encode("utf-8", "surrogatepass")) % (_FIRST_SPECIAL_ID - _FIRST_TEXT_ID)


def block_hashes(tokens: Sequence[Token]) -> tuple[int, ...]:
    """One hash per full block of `BLOCK_TOKENS`, each depending on all tokens before it (a prefix cache's keys).

    Hashes of text differ from process to process (Python salts them); only their equality means something.
    """
    hashes: list[int] = []
    parent = 0
    for start in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        parent = hash((parent, *tokens[start : start + BLOCK_TOKENS]))
        hashes.append(parent)
    return tuple(hashes)
