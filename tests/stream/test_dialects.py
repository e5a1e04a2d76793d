"""What each dialect writes, and how it reads single events."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cliffwatch.errors import InputError
from cliffwatch.stream import DIALECTS
from cliffwatch.stream.dialect import Chunk, Delta, NotTheDialectError, StreamFault, Usage, spelled
from cliffwatch.stream.openai_chat import OpenAIChat

COMPLETIONS = DIALECTS["completions"]
CHAT = DIALECTS["chat"]
TRITON = DIALECTS["triton"]
LLAMA_CPP = DIALECTS["llamacpp"]
SAMPLING = {"temperature": 0, "ignore_eos": True, "stream": False, "model": "other"}


def encoded(dialect: str, *prompts: str) -> dict[str, object]:
    body = DIALECTS[dialect].encode(model="m", prompts=prompts, max_tokens=7, sampling=SAMPLING)
    return json.loads(body)  # type: ignore[no-any-return]


def test_completions_request() -> None:
    expected = {
        "model": "m",
        "max_tokens": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "ignore_eos": True,
    }
    assert encoded("completions", "a") == {**expected, "prompt": "a"}
    assert encoded("completions", "a", "ü") == {**expected, "prompt": ["a", "ü"]}


def test_chat_and_triton_requests_carry_one_prompt() -> None:
    assert encoded("chat", "a")["messages"] == [{"role": "user", "content": "a"}]
    assert encoded("triton", "a")["text_input"] == "a"
    for dialect in ("chat", "triton"):
        with pytest.raises(InputError, match="one prompt a request; got 2"):
            encoded(dialect, "a", "b")


def test_llama_cpp_requests_carry_one_prompt_or_several() -> None:
    expected = {"n_predict": 7, "stream": True, "temperature": 0, "ignore_eos": True, "model": "other"}
    assert encoded("llamacpp", "a") == {**expected, "prompt": "a"}
    assert encoded("llamacpp", "a", "b") == {**expected, "prompt": ["a", "b"]}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_names_the_fields_it_writes_and_sampling_replaces_none(name: str) -> None:
    dialect = DIALECTS[name]
    written = json.loads(dialect.encode(model="m", prompts=["a"], max_tokens=7, sampling={}))
    assert set(written) == dialect.own_fields
    taken = json.loads(
        dialect.encode(model="m", prompts=["a"], max_tokens=7, sampling=dict.fromkeys(dialect.own_fields, "?"))
    )
    assert taken == written


def test_sampling_goes_by_the_dialects_names() -> None:
    given = {"stop": ["a"], "ignore_eos": True, "repetition_penalty": 2, "top_k": 5}
    assert spelled(CHAT, given) == given
    assert spelled(TRITON, given) == {"stop_words": ["a"], "repetition_penalty": 2, "top_k": 5}
    assert spelled(LLAMA_CPP, given) == {"stop": ["a"], "ignore_eos": True, "repeat_penalty": 2, "top_k": 5}


def test_a_conversation_alternates() -> None:
    body = json.loads(OpenAIChat().encode_turn(model="m", said=["a", "b", "c"], max_tokens=7, sampling=SAMPLING))
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]
    assert (body["model"], body["stream"]) == ("m", True)


def test_done_and_null() -> None:
    for dialect in (COMPLETIONS, CHAT):
        assert dialect.decode(b"[DONE]") == Chunk(done=True)
        assert dialect.decode(b"null") == Chunk()


@pytest.mark.parametrize(
    ("message", "delta"),
    [
        ({"role": "assistant"}, None),
        ({"role": "assistant", "content": None}, None),
        ({"content": ""}, None),
        ({"reasoning_content": "", "content": None}, None),
        ({"tool_calls": []}, None),
        ({"tool_calls": [{"function": {"name": None, "arguments": ""}}]}, None),
        ({"tool_calls": [{"index": 0}]}, None),
        ({"content": " "}, Delta(0, " ")),
        ({"content": "�"}, Delta(0, "�")),
        ({"refusal": "no"}, Delta(0, "no")),
        ({"reasoning": "hm"}, Delta(0, "hm", "reasoning")),
        ({"reasoning_content": "hm"}, Delta(0, "hm", "reasoning")),
        ({"reasoning": "hm", "content": "so"}, Delta(0, "so")),
        ({"tool_calls": [{"function": {"name": "f", "arguments": '{"a'}}]}, Delta(0, 'f{"a', "tool")),
        ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, Delta(0, '{"a":1}', "tool")),
        ({"function_call": {"name": "f"}}, Delta(0, "f", "tool")),
        (None, None),
    ],
)
@pytest.mark.parametrize("key", ["delta", "message"])
def test_chat_deltas(key: str, message: object, delta: Delta | None) -> None:
    chunk = CHAT.decode(json.dumps({"choices": [{"index": 0, key: message}]}).encode())
    assert chunk == Chunk(() if delta is None else (delta,))


def test_several_choices_in_one_event() -> None:
    body = {"choices": [{"index": 1, "text": "b", "finish_reason": "stop"}, {"index": 0, "text": "a"}, {"text": ""}]}
    chunk = COMPLETIONS.decode(json.dumps(body).encode())
    assert chunk == Chunk((Delta(1, "b"), Delta(0, "a")), None, {1: "stop"})


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}, Usage(9, 2)),
        ({"choices": None, "usage": {"prompt_tokens": 9, "completion_tokens": 2}}, Usage(9, 2)),
        ({"usage": {"prompt_tokens": 9.0, "completion_tokens": None}}, Usage(9, None)),
        ({"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}}, Usage(9, None, 4)),
        ({"usage": {"prompt_tokens": 9, "prompt_tokens_details": None}}, Usage(9, None)),
        ({"choices": [{"index": 2}], "usage": {"completion_tokens": 3}}, Usage(None, 3, None, 2)),
        ({"choices": [{"index": 0}, {"index": 1}], "usage": {"completion_tokens": 3}}, Usage(None, 3)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": 1e300}}, Usage(-1, -1)),
        ({"usage": {"prompt_tokens": 2.5}}, Usage(-1, None)),
        ({"usage": None}, None),
    ],
)
def test_usage(body: object, usage: Usage | None) -> None:
    for dialect in (COMPLETIONS, CHAT):
        assert dialect.decode(json.dumps(body).encode()) == Chunk(usage=usage)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"error": {"message": "engine died", "code": 500}}, StreamFault("engine died", 500)),
        ({"error": {"message": "a\n  b\u0007", "code": "bad"}}, StreamFault("a b")),
        ({"error": {"type": "overloaded"}}, StreamFault("overloaded")),
        ({"error": {"why": 1}}, StreamFault('{"why": 1}')),
        ({"error": "boom"}, StreamFault("boom")),
        ({"object": "error", "message": "no", "code": 400}, StreamFault("no", 400)),
        ({"object": "error", "message": {"why": 1}}, StreamFault("{'why': 1}")),
        ({"object": "error"}, StreamFault('{"message": null, "code": null}')),
        ({"error": None}, None),
    ],
)
def test_errors_in_the_body(body: object, fault: StreamFault | None) -> None:
    for dialect in (COMPLETIONS, CHAT):
        assert dialect.decode(json.dumps(body).encode()) == Chunk(error=fault)


def test_long_error_messages_are_shortened() -> None:
    fault = COMPLETIONS.decode(json.dumps({"error": "x" * 10_000}).encode()).error
    assert fault is not None
    assert len(fault.message) == 300


def test_triton() -> None:
    assert TRITON.decode(b'{"model_name":"m","text_output":" tok0"}') == Chunk((Delta(0, " tok0"),))
    assert TRITON.decode(b'{"text_output":["a","b"]}') == Chunk((Delta(0, "ab"),))
    assert TRITON.decode(b'{"text_output":""}') == Chunk()
    assert TRITON.decode(b'{"error":"boom"}') == Chunk(error=StreamFault("boom"))


LAST = {"index": 0, "content": "", "stop": True, "stop_type": "limit", "tokens_predicted": 4, "tokens_evaluated": 5}
CACHED = {"tokens_cached": 8, "timings": {"cache_n": 3, "prompt_n": 2}}


@pytest.mark.parametrize(
    ("event", "chunk"),
    [
        (None, Chunk()),
        ({"index": 1, "content": " a", "stop": False, "tokens_predicted": 1}, Chunk((Delta(1, " a"),))),
        ({"content": "", "stop": False}, Chunk()),
        (LAST | CACHED, Chunk(usage=Usage(5, 4, 3, 0), finish={0: "length"})),
        (LAST | {"stop_type": "word", "content": "x"}, Chunk((Delta(0, "x"),), Usage(5, 4, None, 0), {0: "stop"})),
        ({"stop": True, "stop_type": "none"}, Chunk(usage=Usage(None, None, None, 0), finish={0: "none"})),
        ({"error": {"code": 500, "message": "no slot"}}, Chunk(error=StreamFault("no slot", 500))),
    ],
)
def test_llama_cpp(event: object, chunk: Chunk) -> None:
    assert LLAMA_CPP.decode(json.dumps(event).encode()) == chunk


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"index":0,"text":"a","logprobs":{"token_logprobs":[NaN,-Infinity]}}]}',
        b'{"choices":[{"index":0,"text":"a"}],"extra":"\\ud83d"}',
        b'{"choices":[{"index":0,"text":"a"}],"extra":{"deep":[1,{}]},"system_fingerprint":null}',
    ],
)
def test_what_servers_send_beside_strict_json_is_read(data: bytes) -> None:
    assert COMPLETIONS.decode(data) == Chunk((Delta(0, "a"),))


def test_half_a_surrogate_pair_is_text() -> None:
    chunk = COMPLETIONS.decode(b'{"choices":[{"index":0,"text":"\\ud83d"}]}')
    assert len(chunk.deltas[0].text) == 1


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b'{"choices":[', b"[]", b"7", b"[" * 100_000, b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
)
def test_what_is_no_object_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(NotTheDialectError):
        DIALECTS[name].decode(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("completions", b'{"choices":{}}'),
        ("completions", b'{"choices":[{"index":"0"}]}'),
        ("completions", b'{"choices":[{"text":7}]}'),
        ("completions", b'{"choices":[{"text":"\xff"}]}'),
        ("completions", b'{"usage":{"prompt_tokens":"9"}}'),
        ("completions", b'{"usage":{"prompt_tokens":' + b"9" * 5000 + b"}}"),
        ("chat", b'{"choices":[{"delta":[]}]}'),
        ("chat", b'{"choices":[{"delta":{"content":{}}}]}'),
        ("triton", b'{"text_output":3}'),
        ("llamacpp", b'{"content":3}'),
        ("llamacpp", b'{"content":"a","stop":true,"timings":[]}'),
        ("llamacpp", b'{"content":"a","stop":true,"tokens_evaluated":"5"}'),
        ("triton", b"null"),
    ],
)
def test_known_fields_of_a_wrong_type_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(NotTheDialectError):
        DIALECTS[name].decode(data)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    for dialect in DIALECTS.values():
        with suppress(NotTheDialectError):
            dialect.decode(data)


WORDS = ["choices", "index", "text", "delta", "content", "usage", "prompt_tokens", "error", "object", "message"]
WORDS += ["stop", "stop_type", "tokens_evaluated", "timings", "cache_n"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_random_json_of_the_right_words_raises_nothing_else(value: object) -> None:
    data = json.dumps(value).encode()
    for dialect in DIALECTS.values():
        with suppress(NotTheDialectError):
            dialect.decode(data)
