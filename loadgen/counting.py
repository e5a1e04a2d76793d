"""The forms of /tokenize that servers have, as one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import gevent.pool

from cliffwatch.errors import InputError
from cliffwatch.workload.lexicon import TokenCounter
from loadgen.probe import Probe

_PROBES_AT_ONCE = 8


class Counter:
    """Counts each text by one question. Raises InputError when an answer has no count."""

    def __init__(self, count_one: Callable[[str], int | None]) -> None:
        self._count_one = count_one

    def count(self, texts: Sequence[str]) -> list[int]:
        counts = gevent.pool.Pool(_PROBES_AT_ONCE).map(self._count_one, texts)
        known = [count for count in counts if count is not None]
        if len(known) < len(texts):
            raise InputError("the server did not count a text", file="/tokenize")
        return known


@dataclass(frozen=True, slots=True)
class Counters:
    """One form of /tokenize: `text` counts plain text, `chat` a text as one message of a chat, `turns` a whole chat
    (message, answer, message, ...); both None where it cannot."""

    text: TokenCounter
    chat: TokenCounter | None = None
    turns: Callable[[Sequence[str]], int | None] | None = None


def server_counters(probe: Probe, model: str) -> list[Counters]:
    """Every known form, to be tried in turn."""
    return [make(probe, model) for make in (_vllm, _llama_cpp, _tensorrt_llm)]


def works(counter: TokenCounter) -> bool:
    """Whether the server knows this form."""
    try:
        return counter.count(["one two three"])[0] > 0
    except InputError:
        return False


def _vllm(probe: Probe, model: str) -> Counters:
    def text(prompt: str) -> int | None:
        return _integer(_post(probe, "/tokenize", {"model": model, "prompt": prompt}), "count")

    def turns(said: Sequence[str]) -> int | None:
        question = {"model": model, "messages": _messages(said), "add_generation_prompt": True}
        return _integer(_post(probe, "/tokenize", question), "count")

    return Counters(Counter(text), Counter(lambda message: turns([message])), turns)


def _llama_cpp(probe: Probe, _model: str) -> Counters:
    def text(prompt: str) -> int | None:
        answer = _post(probe, "/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
        tokens = answer.get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    def turns(said: Sequence[str]) -> int | None:
        prompt = _post(probe, "/apply-template", {"messages": _messages(said)}).get("prompt")
        return text(prompt) if isinstance(prompt, str) else None

    return Counters(Counter(text), Counter(lambda message: turns([message])), turns)


def _tensorrt_llm(probe: Probe, _model: str) -> Counters:
    """Plain text only: what its chat template adds is measured by requests."""

    def text(prompt: str) -> int | None:
        return _integer(_post(probe, "/_internal/tokenize", {"prompt": prompt}), "count")

    return Counters(Counter(text))


def _messages(said: Sequence[str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in zip(cycle(("user", "assistant")), said, strict=False)]


def _post(probe: Probe, path: str, body: object) -> dict[str, Any]:
    answer = probe.ask("POST", path, body)
    data = answer.json() if answer.status == 200 else None
    return data if isinstance(data, dict) else {}


def _integer(data: dict[str, Any], key: str) -> int | None:
    value = data.get(key)
    return value if isinstance(value, int) else None
