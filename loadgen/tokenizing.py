"""How long a prompt is for the target: asked of its /tokenize, else of a tokenizer file, else estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gevent.pool

from cliffwatch.errors import InputError, UnreachableError
from cliffwatch.workload.prompts import (
    Lexicon,
    TokenCounter,
    build_lexicon,
    calibrated,
    estimated_lexicon,
    probe_prompts,
    tokenizer_counter,
)
from cliffwatch.workload.spec import Workload
from loadgen.target import Answer, Probe

_PROBES_AT_ONCE = 8
_COMPLETIONS, _CHAT = "/v1/completions", "/v1/chat/completions"


class _Counter:
    """Counts each text by one question. Raises InputError when an answer has no count."""

    def __init__(self, count_one: Callable[[str], int | None]) -> None:
        self._count_one = count_one

    def count(self, texts: Sequence[str]) -> list[int]:
        counts = gevent.pool.Pool(_PROBES_AT_ONCE).map(self._count_one, texts)
        known = [count for count in counts if count is not None]
        if len(known) < len(texts):
            raise InputError("the server did not count a text", file="/tokenize")
        return known


def learn_lexicon(
    probe: Probe, model: str, workload: Workload, tokenizer: Path | None
) -> tuple[Lexicon, tuple[str, ...]]:
    """The best lexicon this target allows, and notes for the run's record.

    A tokenizer file that is given is used before the server is asked. Calibrating sends a few requests of one token.

    Raises:
        InputError: the tokenizer file is none, or is not the server's; or lengths cannot be learned in any way.
        UnreachableError: the server stopped answering.
    """
    if tokenizer is not None:
        return _by_file(probe, model, workload, tokenizer)
    why = "the server has no /tokenize"
    for text_counter, chat_counter in _server_counters(probe, model):
        if _works(text_counter):
            try:
                chat = chat_counter if _works(chat_counter) else None
                lexicon = build_lexicon(text_counter, "server_tokenize", chat_counter=chat)
            except InputError as error:
                why = str(error)
                break
            if chat is None and "chat" in endpoints(workload):
                lexicon = _calibrate_chat(probe, model, lexicon)
            return lexicon, ()
    lexicon = _by_estimate(probe, model, workload)
    return lexicon, (f"prompt lengths are estimated ({why}); --tokenizer FILE makes them exact",)


def endpoints(workload: Workload) -> tuple[str, ...]:
    """The endpoints a workload sends to."""
    if workload.endpoint != "auto":
        return (workload.endpoint,)
    sizes = workload.batch.sizes
    return (("chat",) if 1 in sizes else ()) + (("completions",) if sizes != (1,) else ())


def _works(counter: TokenCounter) -> bool:
    try:
        return counter.count(["one two three"])[0] > 0
    except InputError:
        return False


def _server_counters(probe: Probe, model: str) -> list[tuple[TokenCounter, TokenCounter]]:
    """(plain text, one chat message) counters of each known form of /tokenize."""

    def vllm(text: str) -> int | None:
        return _integer(_post(probe, "/tokenize", {"model": model, "prompt": text}), "count")

    def vllm_chat(text: str) -> int | None:
        messages = [{"role": "user", "content": text}]
        question = {"model": model, "messages": messages, "add_generation_prompt": True}
        return _integer(_post(probe, "/tokenize", question), "count")

    def llama_cpp(text: str) -> int | None:
        answer = _post(probe, "/tokenize", {"content": text, "add_special": True, "parse_special": True})
        tokens = answer.get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    def llama_cpp_chat(text: str) -> int | None:
        answer = _post(probe, "/apply-template", {"messages": [{"role": "user", "content": text}]})
        prompt = answer.get("prompt")
        return llama_cpp(prompt) if isinstance(prompt, str) else None

    return [(_Counter(vllm), _Counter(vllm_chat)), (_Counter(llama_cpp), _Counter(llama_cpp_chat))]


def _post(probe: Probe, path: str, body: object) -> dict[str, Any]:
    answer = probe.ask("POST", path, body)
    data = answer.json() if answer.status == 200 else None
    return data if isinstance(data, dict) else {}


def _integer(data: dict[str, Any], key: str) -> int | None:
    value = data.get(key)
    return value if isinstance(value, int) else None


def _by_file(probe: Probe, model: str, workload: Workload, tokenizer: Path) -> tuple[Lexicon, tuple[str, ...]]:
    counter = tokenizer_counter(tokenizer)
    plain = lexicon = build_lexicon(counter, "tokenizer_file")
    for endpoint in endpoints(workload):
        lexicon = calibrated(lexicon, endpoint, _pairs(probe, model, plain, endpoint, counter))
    return lexicon, ("before the load, requests of one token measured what the server adds to a prompt",)


def _calibrate_chat(probe: Probe, model: str, lexicon: Lexicon) -> Lexicon:
    counter = _server_counters(probe, model)
    plain = next(text for text, _ in counter if _works(text))
    return calibrated(lexicon, "chat", _pairs(probe, model, lexicon, "chat", plain))


def _pairs(probe: Probe, model: str, lexicon: Lexicon, endpoint: str, counter: TokenCounter) -> list[tuple[int, int]]:
    """(tokens as the lexicon has them, tokens as the server counts them) of the probe prompts."""
    texts = [text for _, text in probe_prompts()]
    shift = lexicon.overhead(endpoint) - lexicon.special_tokens
    return [
        (built + shift, _prompt_tokens(probe, model, endpoint, text))
        for text, built in zip(texts, counter.count(texts), strict=True)
    ]


def _by_estimate(probe: Probe, model: str, workload: Workload) -> Lexicon:
    used = endpoints(workload)
    counted = {
        endpoint: [(words, _prompt_tokens(probe, model, endpoint, text)) for words, text in probe_prompts()]
        for endpoint in used
    }
    if "completions" not in counted:
        return estimated_lexicon(counted["chat"], counted["chat"])
    return estimated_lexicon(counted["completions"], counted.get("chat", ()))


def _prompt_tokens(probe: Probe, model: str, endpoint: str, text: str) -> int:
    """How many prompt tokens the server says a real request had."""
    content: dict[str, object] = {"prompt": text}
    if endpoint == "chat":
        content = {"messages": [{"role": "user", "content": text}]}
    path = _CHAT if endpoint == "chat" else _COMPLETIONS
    answer = probe.ask("POST", path, {"model": model, "max_tokens": 1, "temperature": 0, **content})
    if answer.status != 200:
        raise _refused(probe, path, answer)
    body = answer.json()
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    if not isinstance(tokens, int):
        allowed = "--tokenizer FILE for a server that tells neither"
        raise InputError("says nothing of prompt tokens", file=probe.origin.url(path), allowed=allowed)
    return tokens


def _refused(probe: Probe, path: str, answer: Answer) -> InputError | UnreachableError:
    kind = UnreachableError if answer.status >= 500 or answer.status == 429 else InputError
    return kind(f"refuses a request of one token: {answer.said}", file=probe.origin.url(path))
