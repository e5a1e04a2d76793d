"""The plainest client there is, for tests that need some traffic and measure nothing."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor


def complete(url: str, prompt_words: int, output_tokens: int) -> None:
    """One completion, waited for. Raises on any answer but 2xx."""
    body = {"model": "any", "prompt": "word " * prompt_words, "max_tokens": output_tokens, "ignore_eos": True}
    with urllib.request.urlopen(f"{url}/v1/models", timeout=30) as answer:  # noqa: S310
        body["model"] = json.load(answer)["data"][0]["id"]
    request = urllib.request.Request(  # noqa: S310
        f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310
        answer.read()


def complete_many(url: str, count: int, *, at_once: int, prompt_words: int, output_tokens: int) -> None:
    """`count` completions, `at_once` of them at a time."""
    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(complete, url, prompt_words, output_tokens) for _ in range(count)]:
            done.result()
